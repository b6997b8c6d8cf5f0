"""What the compiler does, counted and switched off one by one: the option `bisect`."""
