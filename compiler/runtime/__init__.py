"""What generated code needs around it: the CPU's features, a C compiler, the disk cache, the loader.

Knows nothing of graphs or loops: text goes in, addresses come out.  Imports: `base` only.
"""
