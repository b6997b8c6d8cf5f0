"""The warnings of NumPy's arithmetic: torch computes the same numbers and says nothing.

NumPy warns of a result that is not finite though no operand says why: nan where no operand is nan (invalid), inf where
none is nan or inf (overflow, division by zero). That this happens nowhere is assumed and checked when the graph has
run; where it does, the original code runs, and warns or raises itself.

Most programs see finite numbers alone.  As long as their inputs are such, less is checked: that results are finite, and
of a chain of operations that keep what is not, the last one's.  Where that is wrong the code is captured again, with
what excuses each operation.
"""

import math
from collections.abc import Callable
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy
import torch

from ..constant import Constant
from ..reasons import NUMPY, Break
from ..value import CaptureContext, Value


def error_settings() -> tuple[tuple[str, object], ...]:
    """Return what NumPy does at floating-point errors; asked at every call of compiled code."""
    return tuple(numpy.geterr().items())


# a result -> the flags that say it is finite, and its version then: later writes may hide what was not
_CHECK_OF: "WeakKeyDictionary[Value, tuple[Value, int]]" = WeakKeyDictionary()


class FloatWarnings:
    """What the operands of an operation excuse, noted before it runs: it may overwrite one of them."""

    def __init__(
        self, ctx: CaptureContext, operands: list[Value], axes: tuple[int, ...] | None = None, *, keeps: bool = False
    ) -> None:
        """Note it.

        axes: those that the operation folds, each gone or 1 in the result; () for all elements at once.  keeps: what is
        not finite in an operand is not finite in the result either.
        """
        self.ctx = ctx
        self.axes = axes
        settings = dict(error_settings())
        if settings["under"] != "ignore":
            raise Break(NUMPY, "arithmetic that warns of underflow")
        self.checks = set(settings.values()) != {"ignore"}
        numbers = [operand.value for operand in operands if isinstance(operand, Constant)]
        self.finite = self.checks and all(map(_is_finite, numbers)) and ctx.graph.sees_finite_numbers()
        self.behind = [flags for operand in operands if (flags := _known_check(operand))] if keeps else []
        if self.finite:
            return
        self.nan = self._any(torch.isnan, operands, math.isnan)
        self.infinite = self._any(torch.isinf, operands, math.isinf)

    def demand_none(self, result: Value, keepdims: bool = False) -> None:
        """Assume that NumPy would not warn of this result; Break where that cannot be checked.

        keepdims: whether folded axes are 1 in the result.
        """
        if self.finite:
            self._demand_finite(result)
            return
        if not self.checks or self.nan is True:
            return
        if self.axes is not None:
            self.nan, self.infinite = (self._folded(flags, keepdims) for flags in (self.nan, self.infinite))
        quiet = self._call(torch.isfinite, result)
        if self.nan is not None and self.nan is not True:
            quiet = self._call(torch.logical_or, quiet, self.nan)
        if self.infinite is not None:
            grown = self._call(torch.isinf, result)
            if self.infinite is not True:
                grown = self._call(torch.logical_and, grown, self.infinite)
            quiet = self._call(torch.logical_or, quiet, grown)
        if not self.ctx.graph.assume_no_warning(quiet):
            raise Break(NUMPY, "arithmetic that may warn")

    def _demand_finite(self, result: Value) -> None:
        """Assume that a result is finite: where it keeps what is not, its operands are then, and need no check."""
        flags = self._call(torch.lt, self._call(torch.abs, result), Constant(math.inf))
        if not self.ctx.graph.assume_no_warning(flags, finite=True):
            raise Break(NUMPY, "arithmetic that may warn")
        fake = _fake(result)
        if all(type(size) is not int or size > 0 for size in fake.shape):  # an empty one says nothing of its operands
            for known in self.behind:
                self.ctx.graph.follows(known)
        _CHECK_OF[result] = flags, _version(result)

    def _folded(self, flags: Value | bool | None, keepdims: bool) -> Any:
        """Return for each element of the result whether an element that it was folded of has a property."""
        if not isinstance(flags, Value):
            return flags
        if not self.axes:
            return self._call(torch.any, flags)
        settings = {"dim": self.ctx.known(self.axes), "keepdim": Constant(keepdims)}
        return self.ctx.graph.call("call_function", torch.any, [flags], settings)

    def _any(
        self, of_tensor: Callable[..., torch.Tensor], operands: list[Value], of_number: Callable[[float], bool]
    ) -> Value | Literal[True] | None:
        """Return where an operand has a property: True for everywhere, None for nowhere."""
        if not self.checks:
            return None
        combined: Value | None = None
        for operand in operands:
            if isinstance(operand, Constant):
                if isinstance(operand.value, float) and of_number(operand.value):
                    return True
                continue
            flags = self._call(of_tensor, operand)
            combined = flags if combined is None else self._call(torch.logical_or, combined, flags)
        return combined

    def _call(self, function: Callable[..., torch.Tensor], *operands: Value) -> Value:
        return self.ctx.graph.call("call_function", function, list(operands), {})


def _is_finite(number: object) -> bool:
    return not isinstance(number, float) or math.isfinite(number)


def _fake(value: Value) -> Any:
    return value.fake  # type: ignore[attr-defined]  # a tensor of the graph


def _version(value: Value) -> int:
    fake = _fake(value)
    return 0 if fake.is_inference() else int(fake._version)


def _known_check(operand: Value) -> Value | None:
    """Return the flags that say an operand is finite, if it is still what they are about."""
    flags, version = _CHECK_OF.get(operand, (None, 0))
    return flags if flags is not None and _version(operand) == version else None
