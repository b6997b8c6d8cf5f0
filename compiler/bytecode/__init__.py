"""Code objects as data: what capture is built on.

`instruction` decodes a code object once into frozen instructions with jump targets, lines and exception-table rows;
`liveness` says which locals are still read after an instruction; `versions` lists what CPython 3.11, 3.12 and 3.13
call their opcodes; `resume_code` makes a function that continues another one in the middle. Nothing here knows of
tensors or of symbolic values; it imports `base` only.
"""
