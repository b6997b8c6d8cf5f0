"""Hold what one run left against what another left: types, values, tensor metadata, identity and aliasing."""

import functools
import types
from collections import deque
from enum import Enum
from typing import Any

import numpy
import torch

_PLAIN = (
    str,
    bytes,
    int,
    float,
    complex,
    bool,
    type(None),
    torch.dtype,
    torch.device,
    torch.Size,
    type,
    Enum,
    types.ModuleType,
    range,
    slice,
)


class Pairing:
    """Walks two values side by side and keeps which object stands for which, so that sharing is compared too."""

    def __init__(self, rounding: bool = False) -> None:
        self.rounding = rounding  # values may differ as those of another order of the same operations
        self.forth: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self.memory: dict[int, int] = {}
        self.alive: list[Any] = []

    def alike(self, left: Any, right: Any, path: str) -> None:
        """Fail unless both have the same types, values, tensor metadata and sharing."""
        assert type(left) is type(right), f"{path}: {type(left)} is not {type(right)}"
        if isinstance(left, _PLAIN):
            assert left == right or left != left, f"{path}: {left!r} is not {right!r}"
            return
        if not isinstance(left, tuple | frozenset):
            known = self.forth.get(id(left))
            assert (known is None) == (id(right) not in self.back), f"{path}: shared with something in one run only"
            if known is not None:
                assert known == id(right), f"{path}: shared with another object"
                return
            self.forth[id(left)], self.back[id(right)] = id(right), id(left)
            self.alive.append((left, right))
        self._contents(left, right, path)

    def _contents(self, left: Any, right: Any, path: str) -> None:
        if isinstance(left, torch.Tensor):
            self._tensors(left, right, path)
        elif isinstance(left, numpy.ndarray):
            self._arrays(left, right, path)
        elif isinstance(left, dict):
            assert len(left) == len(right), f"{path}: keys {list(left)} are not {list(right)}"
            for key, other in zip(left, right, strict=True):
                self.alike(key, other, f"a key of {path}")
                self.alike(left[key], right[other], f"{path}[{str(key)[:40]}]")
        elif isinstance(left, list | tuple | deque):
            assert len(left) == len(right), f"{path}: length {len(left)} is not {len(right)}"
            for position, (a, b) in enumerate(zip(left, right, strict=True)):
                self.alike(a, b, f"{path}[{position}]")
        elif isinstance(left, set | frozenset):
            assert left == right, f"{path}: {left!r} is not {right!r}"
        self._attributes(left, right, path)

    def _arrays(self, left: Any, right: Any, path: str) -> None:
        assert left.dtype == right.dtype, f"{path}: {left.dtype} is not {right.dtype}"
        assert left.strides == right.strides, f"{path}: strides {left.strides} are not {right.strides}"
        assert numpy.array_equal(left, right, equal_nan=left.dtype.kind in "fc"), f"{path}: {left} is not {right}"
        if left.size:
            self._memory(left.__array_interface__["data"][0], right.__array_interface__["data"][0], path)

    def _memory(self, here: int, there: int, path: str) -> None:
        assert self.memory.setdefault(here, there) == there, f"{path}: shares its memory with another"
        assert self.memory.setdefault(~there, here) == here, f"{path}: shares its memory with another"

    def _attributes(self, left: Any, right: Any, path: str) -> None:
        if isinstance(left, types.FunctionType):
            assert left.__code__ == right.__code__, f"{path}: another function"
            self.alike(
                [_inside(cell) for cell in left.__closure__ or ()],
                [_inside(cell) for cell in right.__closure__ or ()],
                f"{path}.__closure__",
            )
        elif isinstance(left, types.BuiltinFunctionType):
            assert left.__name__ == right.__name__, f"{path}: {left!r} is not {right!r}"
            self.alike(left.__self__, right.__self__, f"{path}.__self__")
        elif isinstance(left, types.MethodType):
            self.alike(left.__self__, right.__self__, f"{path}.__self__")
        elif isinstance(left, functools.partial):
            self.alike([left.func, left.args, left.keywords], [right.func, right.args, right.keywords], path)
        elif not isinstance(left, torch.Tensor | numpy.ndarray):
            for kind in type(left).__mro__:
                for name in _slots(kind):
                    self.alike(getattr(left, name, None), getattr(right, name, None), f"{path}.{name}")
            if isinstance(getattr(left, "__dict__", None), dict):
                self._namespaces(vars(left), vars(right), path)

    def _namespaces(self, left: dict[str, Any], right: dict[str, Any], path: str) -> None:
        assert sorted(map(str, left)) == sorted(map(str, right)), f"{path}: attributes {list(left)}, not {list(right)}"
        for name in left:
            self.alike(left[name], right[name], f"{path}.{name}")

    def _tensors(self, left: torch.Tensor, right: torch.Tensor, path: str) -> None:
        assert left.dtype == right.dtype, f"{path}: {left.dtype} is not {right.dtype}"
        assert left.shape == right.shape, f"{path}: shape {tuple(left.shape)} is not {tuple(right.shape)}"
        assert left.stride() == right.stride(), f"{path}: strides {left.stride()} are not {right.stride()}"
        assert left.requires_grad == right.requires_grad, f"{path}: requires_grad is {right.requires_grad}"
        assert left.is_leaf == right.is_leaf, f"{path}: is_leaf is {right.is_leaf}"
        if self.rounding and left.is_floating_point():
            torch.testing.assert_close(right, left, equal_nan=True, msg=lambda text: f"{path}: {text}")
        else:
            assert torch.equal(torch.nan_to_num(left), torch.nan_to_num(right)), f"{path}: {left} is not {right}"
        if left.numel():
            here, there = left.untyped_storage().data_ptr(), right.untyped_storage().data_ptr()
            assert self.memory.setdefault(here, there) == there, f"{path}: shares its memory with another tensor"
            assert self.memory.setdefault(~there, here) == here, f"{path}: shares its memory with another tensor"
        if left.is_leaf:
            self.alike(left.grad, right.grad, f"{path}.grad")


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _inside(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return "an empty cell"


def assert_alike(left: Any, right: Any, path: str = "result", rounding: bool = False) -> None:
    """Fail unless both have the same types, values, tensor metadata, identities and shared memory.

    rounding: floating-point tensors may differ by `torch.testing`'s default tolerance.
    """
    Pairing(rounding).alike(left, right, path)
