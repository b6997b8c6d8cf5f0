"""Fuzzers and sweeps: programs under transforms, changes of what guards protect, and every operator of torch."""
