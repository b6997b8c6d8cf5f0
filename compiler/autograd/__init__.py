"""Wing 2: from a torch-level graph to forward and backward ATen graphs with eager's exact meaning (AOTAutograd's job).

Forward and gradients are traced together, mutations and views become values, a minimum cut decides what is kept for
backward, and one `torch.autograd.Function` with a thin wrapper puts mutations, aliases and gradients back. May import
`base` and `graph`; knows nothing of bytecode and nothing of kernels.
"""
