"""Numbers read from tensors by `item()` that stay in the graph: under `capture_scalar_outputs`.

Such a number is a tensor of no dimension in float64 or int64, which has every value that `item()` can give. As long as
it only meets tensors in sums, differences, products and quotients the graph goes on; whatever needs the number itself
breaks the graph there, and Python reads it then. Where a tensor of no dimension would give another dtype, or other
bits, than the number does, it is a break too.
"""

import operator
from typing import Any

import torch

from ...constant import Constant
from ...operator_table import Binary, Unary
from ...python.containers.lists import ListValue
from ...reasons import DATA_DEPENDENT_VALUE, Break, BreakReason
from ...value import Arguments, CaptureContext, Keywords, Rebuilder, Value

_EXACT = 2**53  # the largest span in which every whole number is a float64
_LONGEST_LIST = 16
_BESIDE_TENSORS = frozenset("+-*/")
_BESIDE_NUMBERS = frozenset("+-*")


class DeferredNumber(Value):
    """A number that the graph computes; scalar: the tensor of no dimension that holds it."""

    def __init__(self, scalar: Value, fake: torch.Tensor, kind: type) -> None:
        self.scalar = scalar
        self.fake = fake
        self.kind = kind

    def python_type(self) -> type:
        """Return float or int."""
        return self.kind

    def describe(self) -> str:
        """Return what it is."""
        return f"{self.kind.__name__} that item() of a tensor gives"

    def unsupported(self, operation: str, reason: BreakReason) -> Any:
        """Raise Break: only the number itself will do."""
        raise Break(DATA_DEPENDENT_VALUE, f"{operation} on {self.describe()}")

    def constant(self) -> object:
        """Raise Break: it is not known while capturing."""
        raise Break(DATA_DEPENDENT_VALUE, self.describe())

    def truth(self, ctx: CaptureContext) -> bool:
        """Raise Break: it depends on data."""
        raise Break(DATA_DEPENDENT_VALUE, f"truth value of {self.describe()}")

    def graph_argument(self, ctx: CaptureContext) -> tuple[object, object]:
        """Raise Break: an operation that takes a number does not take a tensor in its place."""
        raise Break(DATA_DEPENDENT_VALUE, f"{self.describe()}, as an argument")

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Raise Break: methods of numbers need the number."""
        raise Break(DATA_DEPENDENT_VALUE, f"attribute {name!r} of {self.describe()}")

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Raise what Python raises."""
        ctx.throw(TypeError, f"'{self.kind.__name__}' object is not callable")

    def rebuild(self, out: Rebuilder) -> str:
        """Read the number where Python goes on."""
        name = out.fresh()
        out.line(f"{name} = {out.value(self.scalar)}.item()")
        return name

    def beside(self, tensor: torch.Tensor, record: Binary, reflected: bool) -> Value:
        """Return what stands for the number in an operation with a tensor; Break where that gives something else.

        reflected: the number is on the left.
        """
        fits = tensor.dim() > 0 and (self.kind is int or tensor.is_floating_point() or tensor.is_complex())
        known = record.symbol in _BESIDE_TENSORS and not (record.symbol == "/" and reflected)
        if not fits or not known or tensor.device.type != "cpu":
            raise Break(DATA_DEPENDENT_VALUE, f"{record.symbol} of {self.describe()} and a tensor")
        return self.scalar

    def binary(self, ctx: CaptureContext, record: Binary, other: Value, reflected: bool, inplace: bool) -> Value | None:
        """Calculate with another float as Python does: in float64."""
        value = other.value if isinstance(other, Constant) else other
        if isinstance(value, DeferredNumber):
            operand: Value | None = value.scalar if value.kind is float else None
        else:
            exact = type(value) is float or (type(value) is int and abs(value) < _EXACT)
            operand = Constant(float(value)) if exact and isinstance(value, int | float) else None
        if self.kind is not float or operand is None or record.symbol not in _BESIDE_NUMBERS:
            return None
        operands = [operand, self.scalar] if reflected else [self.scalar, operand]
        return self._of(ctx.graph.call("call_function", record.function, operands, {}))

    def unary(self, ctx: CaptureContext, record: Unary) -> Value | None:
        """Negate a float."""
        if self.kind is not float or record.symbol != "-":
            return None
        return self._of(ctx.graph.call("call_function", record.function, [self.scalar], {}))

    def _of(self, scalar: Value) -> "DeferredNumber":
        return DeferredNumber(scalar, self.fake, self.kind)


def deferred(ctx: CaptureContext, tensor: Value, fake: torch.Tensor) -> Value | None:
    """Return the number that `item()` of a tensor gives, kept in the graph; None where it has to be read.

    Where it takes little to compute, it is computed at entry and may vary: then it can be a size, an index, or decide a
    branch. Else it is taken now: the tensor may be written to later.
    """
    whole = fake.dtype in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
    if not ctx.options.capture_scalar_outputs or fake.device.type != "cpu" or ctx.graph.is_apart():
        return None
    if fake.numel() != 1 or not (whole or fake.is_floating_point() or fake.dtype is torch.bool):
        return None
    number = ctx.graph.open_number(tensor)
    if number is not None:
        return number
    if fake.dim() != 0 or fake.dtype is torch.bool:
        return None
    scalar = tensor
    for method in ("detach", "clone", "long" if whole else "double"):
        scalar = ctx.graph.call("call_method", method, [scalar], {})
    return DeferredNumber(scalar, fake, int if whole else float)


def deferred_list(ctx: CaptureContext, tensor: Value, fake: torch.Tensor) -> Value | None:
    """Return the list that `tolist()` of a tensor of one dimension gives, of numbers that are kept; None as above."""
    if not ctx.options.capture_scalar_outputs or fake.dim() != 1 or type(fake.shape[0]) is not int:
        return deferred(ctx, tensor, fake) if fake.dim() == 0 else None
    if fake.shape[0] > _LONGEST_LIST:
        return None
    numbers: list[Value] = []
    for position in range(fake.shape[0]):
        element = ctx.graph.call("call_function", operator.getitem, [tensor, Constant(position)], {})
        number = deferred(ctx, element, fake[position])
        if number is None:
            return None
        numbers.append(number)
    return ListValue(numbers)
