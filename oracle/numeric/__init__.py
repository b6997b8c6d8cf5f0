"""Whether two tensors differ by more than rounding explains, in units of the program's own noise."""
