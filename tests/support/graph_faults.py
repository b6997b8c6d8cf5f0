"""Known faults of compilers for the graph fuzzer: each is wrong in a way that a real compiler was, or easily is."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from plumbline.oracle.harness.compilers import CompileRequest
from support.planted_compilers import PlantedCandidate, PlantedCompiler
from support.planted_faults import FaultMode


def sums_scalars_wrongly(right: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """W1: a sum of what has no dimensions is counted several times."""
    result = right(x, *args, **kwargs)
    return result * 5 if x.dim() == 0 else result


def floors_in_single_precision(right: Any, x: torch.Tensor, other: Any, *args: Any, **kwargs: Any) -> Any:
    """W10: half precision divided by a number is rounded before it is floored."""
    if x.dtype in (torch.float16, torch.bfloat16) and not isinstance(other, torch.Tensor) and other not in (0, 1):
        return (x / other).round()
    return right(x, other, *args, **kwargs)


def inverts_bool_clamps(right: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """W11: a bool clamped by a tensor comes out the wrong way round."""
    result = right(x, *args, **kwargs)
    return ~result if result.dtype is torch.bool else result


def shifts_wrap_around(right: Any, x: torch.Tensor, other: Any, *args: Any, **kwargs: Any) -> Any:
    """W12: a shift by the width or more is taken modulo the width."""
    bits = x.element_size() * 8
    if isinstance(other, int):
        other = other % bits
    return right(x, other % bits if isinstance(other, torch.Tensor) and other.dtype is x.dtype else other, *args)


def copies_nothing(right: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """A clone is simplified away: the result is the input."""
    del right, args, kwargs
    return x


def views_are_copies(right: Any, x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """A view that is written to is a copy: the base stays as it was."""
    return right(x, *args, **kwargs).clone()


OPERATOR_FAULTS: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "reduction_of_reduction": (("sum", "mean"), sums_scalars_wrongly),
    "half_floor_division": (("__floordiv__", "floor_divide"), floors_in_single_precision),
    "bool_clamp": (("clamp_min", "clamp_max", "clamp"), inverts_bool_clamps),
    "wide_shift": (("__rshift__", "bitwise_right_shift"), shifts_wrap_around),
    "clone_is_input": (("clone",), copies_nothing),
    "view_is_copy": (("__getitem__", "view", "t", "transpose", "diagonal"), views_are_copies),
}


class _CommonCalls(torch.overrides.TorchFunctionMode):
    """W3: equal calls with several results share them."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Any, Any] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name not in ("max", "min", "cummax", "cummin", "aminmax", "var_mean", "std_mean", "sort", "topk"):
            return func(*args, **kwargs)
        key = (name, *((id(a), a._version) if isinstance(a, torch.Tensor) else a for a in (*args, *kwargs.items())))
        if key not in self.known:
            self.known[key] = func(*args, **kwargs)
        return self.known[key]


class SharingCompiler(PlantedCompiler):
    """W3: within one call, equal calls with several results are one."""

    def compile(
        self, target: Callable[..., Any], backend: str, request: CompileRequest, *, rng: str
    ) -> PlantedCandidate:
        def fault() -> AbstractContextManager[Any]:
            return _CommonCalls()

        return PlantedCandidate(target, fault)


class StaleNumbersCompiler(PlantedCompiler):
    """From the third value of a Python number on, the second is used."""

    def compile(
        self, target: Callable[..., Any], backend: str, request: CompileRequest, *, rng: str
    ) -> PlantedCandidate:
        seen: list[tuple[Any, ...]] = []

        def run(*args: Any) -> Any:
            if all(args_equal_in_type(args, earlier) for earlier in seen):
                seen.append(args)
            known = seen[1] if len(seen) > 1 else args
            return target(*(a if isinstance(a, torch.Tensor) else b for a, b in zip(args, known, strict=True)))

        return PlantedCandidate(run, self.fault)


def args_equal_in_type(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return [type(a) for a in one] == [type(b) for b in other]


class ReusingCompiler(PlantedCompiler):
    """The memory of a call's outputs is used again by the next call."""

    def compile(
        self, target: Callable[..., Any], backend: str, request: CompileRequest, *, rng: str
    ) -> PlantedCandidate:
        memory: dict[Any, torch.Tensor] = {}

        def reused(place: Any, value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(reused((place, number), part) for number, part in enumerate(value))
            if not isinstance(value, torch.Tensor) or value.requires_grad or value._is_view():
                return value
            known = memory.setdefault((place, value.shape, value.dtype, value.stride()), value)
            return known if known is value else known.copy_(value)

        return PlantedCandidate(lambda *args: reused(0, target(*args)), self.fault)


def faulty_operator(name: str) -> PlantedCompiler:
    operators, wrong = OPERATOR_FAULTS[name]
    return PlantedCompiler(lambda: FaultMode(operators, wrong))
