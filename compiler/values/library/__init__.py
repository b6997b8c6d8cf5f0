"""What a program calls of Python's builtins, the standard library and NumPy."""
