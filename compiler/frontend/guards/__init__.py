"""Guards of a specialisation: how each kind is checked, and the function that checks them and goes on.

A guard states what must hold (`values/guard.py`). `rules` is the list of its kinds, one row each (`rule` says what a
row is; the rows are in `object_rules`, `container_rules`, `answer_rules` and `tensor_rules`). `guarded_code` makes the
callable: `guard_table` turns the guards into `steps` for the evaluator in C (`guard_evaluator`, which reads tensors
where `tensor_layout` found their fields), or `generated_function` writes the same checks as Python. After a miss
`recompile_reasons` says which guard failed and why. May import `base`, `runtime` and `values`; knows nothing of frames.
"""
