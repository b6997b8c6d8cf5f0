"""A scheduled loop as one Triton kernel: `tiles` chooses blocks, the other files write the text.

Nothing here imports triton: the result is text and a table, as for C.
"""
