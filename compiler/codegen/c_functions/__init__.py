"""The functions that generated C may call: arithmetic, elementary functions, reads and writes of memory."""
