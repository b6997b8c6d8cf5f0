"""The compiler: bytecode capture, autograd, code generation."""
