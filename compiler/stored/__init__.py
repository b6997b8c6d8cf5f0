"""What is compiled, as plain data on disk: how it is written, what it is found by, and where it stands."""
