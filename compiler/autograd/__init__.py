"""From a torch-level graph to forward and backward ATen graphs with eager's exact meaning (the job of AOTAutograd).

Forward and gradients are traced together, mutations and views become values, a minimum cut decides what is kept for
backward, and one `torch.autograd.Function` with a thin wrapper restores mutations, aliases and gradients. May import
`base` and `graph`; knows nothing of bytecode or kernels.
"""
