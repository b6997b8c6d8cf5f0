"""The warnings of NumPy's arithmetic: torch computes the same numbers and says nothing.

NumPy warns of a result that is not finite though no operand says why: nan where no operand is nan (invalid), inf where
none is nan or inf (overflow, division by zero). That this happens nowhere is assumed and checked when the graph has
run; where it does, the original code runs, and warns or raises itself.
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


_CHECK_OF: "WeakKeyDictionary[Value, Value]" = WeakKeyDictionary()  # a result -> the flags that were assumed of it


class FloatWarnings:
    """What the operands of an operation excuse, noted before it runs: it may overwrite one of them."""

    def __init__(
        self, ctx: CaptureContext, operands: list[Value], axes: tuple[int, ...] | None = None, *, sums: bool = False
    ) -> None:
        """Note it.

        axes: those that the operation folds, each gone or 1 in the result; () for all elements at once.  sums: what is
        not finite is not finite in the result either.
        """
        self.ctx = ctx
        self.axes = axes
        self.behind = _CHECK_OF.get(operands[0]) if sums and operands else None
        settings = dict(error_settings())
        if settings["under"] != "ignore":
            raise Break(NUMPY, "arithmetic that warns of underflow")
        self.checks = set(settings.values()) != {"ignore"}
        self.nan = self._any(torch.isnan, operands, math.isnan)
        self.infinite = self._any(torch.isinf, operands, math.isinf)

    def demand_none(self, result: Value, keepdims: bool = False) -> None:
        """Assume that NumPy would not warn of this result; Break where that cannot be checked.

        keepdims: whether folded axes are 1 in the result.
        """
        if not self.checks or self.nan is True:
            return
        if self.axes is not None:
            self.nan, self.infinite = (self._folded(flags, keepdims) for flags in (self.nan, self.infinite))
        quiet = self._call(torch.isfinite, result)
        if self.behind is not None:
            self._demand_finite(quiet)
            return
        if self.nan is not None and self.nan is not True:
            quiet = self._call(torch.logical_or, quiet, self.nan)
        if self.infinite is not None:
            grown = self._call(torch.isinf, result)
            if self.infinite is not True:
                grown = self._call(torch.logical_and, grown, self.infinite)
            quiet = self._call(torch.logical_or, quiet, grown)
        if not self.ctx.graph.assume_no_warning(quiet):
            raise Break(NUMPY, "arithmetic that may warn")
        _CHECK_OF[result] = quiet

    def _demand_finite(self, finite: Value) -> None:
        """Assume that sums are finite: then so is all that was summed, and what was assumed of it need not be."""
        assert self.behind is not None
        if not self.ctx.graph.assume_no_warning(finite):
            raise Break(NUMPY, "arithmetic that may warn")
        self.ctx.graph.follows(self.behind)

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
