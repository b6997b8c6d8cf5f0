"""Sequences, mappings, sets and the iterators over them."""
