"""The tensor-level graph, which capture, autograd and code generation share.

Graphs are `torch.fx` (the ecosystem's exchange format) held to a discipline: typed access to `node.meta`
(node_values), one table of facts per ATen operator (facts), named checks (checks), printing as Python that runs
(printing), a reference meaning (interpret), passes that take a graph and return one (passes), our own recorder of
ATen calls (tracer) and big operators as small ones (decompositions). May import `base` and nothing above.
"""
