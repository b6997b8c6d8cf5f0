"""Planted faults: make the compiler wrong inside a block, to see whether your tests notice.

A replaced lowering is reproduced in scripts that `repro-minify` writes. Kernels on disk are found by their text, so
that a wrong one is never used for a right one.

>>> import torch
>>> import plumbline
>>> from plumbline.testing import lowering_of, replace_lowering
>>> aten = torch.ops.aten
>>> with replace_lowering(aten.mul.Tensor, lowering_of(aten.div.Tensor)):
...     wrong = plumbline.compile(lambda x: x * 2)(torch.ones(1))
>>> float(wrong)
0.5
"""

from plumbline.compiler.frontend.planted_capture import ignore_guards, replace_captured
from plumbline.compiler.lowering import lower as _every_lowering  # noqa: F401  registers them all
from plumbline.compiler.lowering.registry import lowering_of, replace_lowering
from plumbline.compiler.schedule.schedule import replace_pass

__all__ = ["ignore_guards", "lowering_of", "replace_captured", "replace_lowering", "replace_pass"]
