"""Tensors, modules and the calls into torch."""
