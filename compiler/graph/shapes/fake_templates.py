"""Fake tensors whose sizes and strides are known already, copied from templates: a hundredth of the time of a new one.

torch derives strides, counts elements and asks for contiguity anew for every fake tensor.  With symbolic sizes that is
arithmetic on expressions, half a millisecond for each tensor.  A template has been asked once; a copy of it keeps the
answers and is given memory of its own, or that of the tensor that it is a view of.
"""

from collections.abc import Sequence
from typing import Any

import torch

from ...base.torch_facts import FakeTensorMode, fake_like_template, without_dispatch

Number = int | torch.SymInt
Key = tuple[Any, ...]  # whole numbers, and the expressions of symbolic ones


def key_of(numbers: Sequence[Number]) -> Key:
    """Return what two sequences of numbers have in common only if they are equal, whatever the sizes are."""
    return tuple([number if type(number) is int else _expression(number) for number in numbers])


def _expression(number: Any) -> Any:
    expression = number.node.expr
    return int(expression) if expression.is_Integer else expression


class FakeTemplates:
    """Templates of one fake mode, by what their copies are like."""

    def __init__(self) -> None:
        self._templates: dict[Key, torch.Tensor] = {}

    def new(
        self,
        mode: FakeTensorMode,
        sizes: Sequence[Number],
        strides: Sequence[Number],
        dtype: torch.dtype,
        device: torch.device,
    ) -> torch.Tensor:
        """Return a fake tensor with memory of its own."""
        key = (key_of(sizes), key_of(strides), dtype)
        template = self._templates.get(key)
        if template is None:
            with without_dispatch():
                template = self._kept(key, torch.empty_strided(sizes, strides, dtype=dtype, device="meta"))
        with without_dispatch():
            return fake_like_template(mode, template, None, device)

    def view(
        self, mode: FakeTensorMode, sizes: Sequence[Number], strides: Sequence[Number], offset: Number, of: torch.Tensor
    ) -> torch.Tensor:
        """Return a fake tensor in the memory of another."""
        key = (key_of(sizes), key_of(strides), key_of((offset,)), of.dtype)
        template = self._templates.get(key)
        if template is None:
            with without_dispatch():
                anywhere = torch.empty(0, dtype=of.dtype, device="meta")
                template = self._kept(key, torch.as_strided(anywhere, sizes, strides, offset))
        with without_dispatch():
            return fake_like_template(mode, template, of, of.device)

    def _kept(self, key: Key, template: torch.Tensor) -> torch.Tensor:
        template.is_contiguous()  # the first question computes the answer, and copies have it
        self._templates[key] = template
        return template
