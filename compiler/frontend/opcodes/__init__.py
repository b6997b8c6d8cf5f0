"""What each opcode of CPython does to a frame: one rule per opcode and range of versions."""
