"""ATen to loops: one small function per operator family says which loops an operator is.

An operator without a lowering stays an ATen call on whole tensors, so every graph compiles.
Imports: `base`, `graph`, `loops`, `symbolic`.
"""
