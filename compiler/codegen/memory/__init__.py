"""Where the results of kernels lie."""
