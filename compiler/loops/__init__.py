"""The loop-level program: what each element is, which loops visit it, in which order memory is written.

A loop is a frozen graph of scalar operations over named index variables; it prints as Python for-loops that run,
is checked by named rules, and has an interpreter that is its meaning.  Imports: `base`, `graph`, `symbolic`.
"""
