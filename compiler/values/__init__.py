"""Python values under symbolic evaluation.

One class per kind of value: what it is at run time is reached through its `Source`, what must stay true for the
capture to be reusable is a `Guard`, what the captured code changed is replayed after the graph. Values never import
the evaluator: whatever they need from the capture they ask of `CaptureContext` (`value.py`). A rule that cannot answer
raises `Break` with a reason of the catalogue in `reasons.py`; it never guesses. May import `base`.

The files beside this one are the protocol and the values that hold no others. Above them stand, in this order,
`python` (containers, then objects and classes), `torch` (tensors and what works on them), `library` (what programs
call of Python, its standard library and NumPy), `wrap` (real objects become values) and `rules`, the written list of
every module that enters rules.
"""
