"""Code generation: kernels as one plain C file per graph, and the Python host that calls them.

The C has no includes and links against nothing; vector arithmetic is GCC's vector extension, elementary functions
are called through a table of addresses filled when the file is loaded.
Imports: `base`, `loops`, `runtime`, `schedule`, `symbolic`.
"""
