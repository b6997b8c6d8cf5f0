"""`__torch_function__`: subclasses of tensors, modes, and classes that are no tensors."""
