"""Capture: a Python function becomes guarded graphs and the Python between them.

`unit` owns the specialisations of one piece of code and dispatches calls to them; on a miss `capture` evaluates the
bytecode symbolically (`evaluate`, the rules in `opcodes`, `context` as what rules and values talk to), and
`residual` writes the Python that runs afterwards: check the guards (`guards`), call the graph, rebuild values, replay
side effects, and at a graph break do the operation in plain Python (`breaks`) and continue in a
resume unit, which is a unit like any other. What cannot be captured runs eagerly, with the reason in the compile
record. May import `base`, `bytecode` and `values`.
"""
