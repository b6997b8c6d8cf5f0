"""Scheduling: which loops become one kernel, in which order kernels run, where intermediate tensors live.

Takes a loop program and returns one with the same meaning.  Imports: `base`, `loops`, `symbolic`.
"""
