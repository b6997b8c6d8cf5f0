"""Random Python programs compiled by a compiler and compared with plain Python."""
