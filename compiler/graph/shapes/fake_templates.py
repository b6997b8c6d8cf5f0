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
                template = self._kept(key, _empty(sizes, strides, dtype, key[:2]))
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
                template = self._kept(key, _placed(sizes, strides, offset, of.dtype, key[:2]))
        with without_dispatch():
            return fake_like_template(mode, template, of, of.device)

    def _kept(self, key: Key, template: torch.Tensor) -> torch.Tensor:
        template.is_contiguous()  # the first question computes the answer, and copies have it
        self._templates[key] = template
        return template


def _empty(sizes: Sequence[Number], strides: Sequence[Number], dtype: torch.dtype, key: Key) -> torch.Tensor:
    """Return a new meta tensor; key: of its sizes and strides.

    torch knows at once that what it lays out itself is contiguous; elsewhere it asks size by size, which takes longer
    than all the rest.
    """
    if _may_be_row_major(key):
        template = torch.empty(sizes, dtype=dtype, device="meta")
        if key_of(template.stride()) == key[1]:
            return template
    return torch.empty_strided(sizes, strides, dtype=dtype, device="meta")


def _placed(
    sizes: Sequence[Number], strides: Sequence[Number], offset: Number, dtype: torch.dtype, key: Key
) -> torch.Tensor:
    """Return a meta tensor at an offset of some memory; key: of its sizes and strides."""
    if type(offset) is int and offset == 0:
        return _empty(sizes, strides, dtype, key)
    return torch.as_strided(torch.empty(0, dtype=dtype, device="meta"), sizes, strides, offset)


def _may_be_row_major(key: Key) -> bool:
    """Return whether a look at the last stride leaves it open that the strides are products of sizes."""
    sizes, strides = key
    return 0 not in sizes and (not strides or (strides[-1] == 1 and (len(strides) == 1 or strides[-2] == sizes[-1])))
