"""Every call of ATen that torch's sample inputs lead to gives sizes, strides and dtype as the rules of a trace say."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from plumbline.compiler.base.torch_facts import FakeTensorMode
from plumbline.compiler.graph.shapes.shape_rules import fake_result
from plumbline.compiler.graph.tracer import fake_like
from plumbline.fuzz.operator_sweep.torch_samples import OPERATORS

PARTS, SAMPLES = 12, 2


def last_first(x: torch.Tensor) -> torch.Tensor:
    """Let the last dimension lie outermost in memory."""
    return x.transpose(0, -1).contiguous().transpose(0, -1) if x.dim() > 1 else x


def channels_last(x: torch.Tensor) -> torch.Tensor:
    """Let the second dimension lie innermost in memory, as images do; of any number of dimensions."""
    return x.movedim(1, -1).contiguous().movedim(-1, 1) if x.dim() > 2 else last_first(x)


def as_images(x: torch.Tensor) -> torch.Tensor:
    """Make a tensor of four dimensions, and let it lie as images do."""
    x = x.expand(*(2,) * (4 - x.dim()), *x.shape) if 0 < x.dim() < 4 else x
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else last_first(x)


def rows_swapped(x: torch.Tensor) -> torch.Tensor:
    """Let the second dimension lie outermost in memory."""
    return x.transpose(0, 1).contiguous().transpose(0, 1) if x.dim() > 2 else x


LAYOUTS = {"last first": last_first, "channels last": channels_last, "images": as_images, "rows swapped": rows_swapped}


def in_layout(layout: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: layout(x.detach()) if x.layout is torch.strided and x.numel() else x


class _Promises(TorchDispatchMode):
    """Runs each call, and notes where the rules of a trace say something else of its results."""

    def __init__(self) -> None:
        super().__init__()
        self.compared = 0
        self.broken: list[str] = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs, mode = kwargs or {}, FakeTensorMode()
        try:
            fakes = pytree.tree_map_only(torch.Tensor, lambda x: fake_like(x, mode), (list(args), kwargs))
            with mode:
                promised = fake_result(operator, *fakes)
        except Exception:  # layouts and sizes that a trace does not take in
            return operator(*args, **kwargs)
        result = operator(*args, **kwargs)
        written = {id(x) for x in pytree.tree_leaves((args, kwargs))}
        for real, fake in zip(pytree.tree_leaves(result), pytree.tree_leaves(promised), strict=True):
            if isinstance(real, torch.Tensor) and real.numel() and id(real) not in written:
                self.compared += 1
                if form(real) != form(fake):
                    self.broken.append(f"{operator}: {form(real)}, promised {form(fake)}")
        return result


def form(x: torch.Tensor) -> tuple[object, ...]:
    return x.dtype, tuple(x.shape), x.stride()


def rank(sample: Any) -> int:
    """Return the dimensions that can lie in another order."""
    tensors = [x for x in pytree.tree_leaves((sample.input, sample.args)) if isinstance(x, torch.Tensor)]
    return min(4, max((x.dim() for x in tensors), default=0))


def calls(part: int, layout: str) -> Iterator[tuple[Callable[..., object], tuple[object, ...], dict[str, object]]]:
    for info in list(OPERATORS.values())[part::PARTS]:
        if info.name.startswith("jiterator") or not info.supports_dtype(torch.float32, "cpu"):
            continue
        samples = list(itertools.islice(info.sample_inputs("cpu", torch.float32), 20))
        for sample in sorted(samples, key=rank, reverse=True)[:SAMPLES]:
            args = (sample.input, *sample.args)
            yield info, pytree.tree_map_only(torch.Tensor, in_layout(LAYOUTS[layout]), args), sample.kwargs


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_results_lie_as_was_promised(part: int, layout: str) -> None:
    promises = _Promises()
    for operator, args, kwargs in calls(part, layout):
        try:
            with promises:
                operator(*args, **kwargs)
        except (
            RuntimeError,
            IndexError,
            ValueError,
            AssertionError,
        ):  # views, other dimensions
            continue
    assert promises.compared > 50
    assert promises.broken == []
