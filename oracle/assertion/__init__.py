"""Two results held to be the same: nested containers of tensors compared by what rounding explains."""
