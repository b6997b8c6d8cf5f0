"""What torch would ask `__torch_function__` about an operation: torch itself is asked, on stand-ins.

Which function an operation is to an override (`x * 2` is `Tensor.mul`), and with which arguments, is decided by torch
before it looks at any data. So the operation is run on empty tensors of the same classes under a mode that stops it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ...constant import Constant
from ...python.containers.lists import ListValue
from ...python.containers.mappings import DictValue
from ...python.containers.sequences import SequenceValue
from ...python.containers.tuples import TupleValue
from ...reasons import UNSUPPORTED_TENSOR, Break
from ...value import Arguments, CaptureContext, Keywords, Value
from ..tensor import TensorValue
from .subclass_values import SubclassValue


@dataclass(frozen=True, slots=True)
class OverridableCall:
    """What an override is given. types: the classes with a say, in the order in which torch asks them."""

    function: Value
    types: tuple[type, ...]
    args: tuple[Value, ...]
    kwargs: dict[str, Value] | None

    def arguments(self, ctx: CaptureContext) -> list[Value]:
        """Return the arguments of `__torch_function__` behind the class or the mode."""
        given = [self.function, TupleValue([ctx.known(kind) for kind in self.types]), TupleValue(list(self.args))]
        if self.kwargs is not None:
            given.append(DictValue.of(ctx, [(Constant(name), value) for name, value in self.kwargs.items()]))
        return given


class _Seen(Exception):
    """Carries what torch has asked."""

    def __init__(self, function: Any, types: Any, args: Any, kwargs: Any) -> None:
        self.asked = (function, types, args, kwargs)
        super().__init__()


class _Stopping(TorchFunctionMode):
    """Stops the first operation."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Raise _Seen."""
        raise _Seen(func, tuple(types), args, kwargs)


class _StandIns:
    """Real objects for values, and the values for them."""

    def __init__(self, ctx: CaptureContext) -> None:
        self.ctx = ctx
        self.values: dict[int, Value] = {}
        self.alive: list[object] = []

    def of(self, value: Value) -> Any:
        """Return what stands for a value: containers are new ones, tensors have no elements."""
        value = self.ctx.realize(value)
        made = self._made(value)
        self.values.setdefault(id(made), value)
        self.alive.append(made)
        return made

    def _made(self, value: Value) -> Any:
        if isinstance(value, SubclassValue):
            return torch.empty(0).as_subclass(value.kind)
        if isinstance(value, TensorValue):
            return torch.empty(0)
        if isinstance(value, ListValue | TupleValue):
            parts = [self.of(part) for part in value.items]
            if value.kind in (list, tuple):
                return parts if value.kind is list else tuple(parts)
        if not isinstance(value, SequenceValue) and value.is_constant():
            return value.constant()
        raise Break(UNSUPPORTED_TENSOR, f"{value.describe()} as an argument of an operation that is overridden")

    def value(self, real: Any) -> Value:
        """Return the value of what an override is given."""
        known = self.values.get(id(real))
        if known is not None:
            return known
        if type(real) in (tuple, list) and any(isinstance(part, torch.Tensor) for part in real):
            parts = [self.value(part) for part in real]
            return TupleValue(parts) if type(real) is tuple else ListValue(parts)
        if isinstance(real, torch.Tensor):
            raise Break(UNSUPPORTED_TENSOR, "a tensor that torch makes before it asks an override")
        return self.ctx.known(real)


def recorded_call(
    ctx: CaptureContext, operation: Callable[..., object], args: Arguments, kwargs: Keywords
) -> OverridableCall:
    """Return what torch asks about an operation first; Break where it asks nothing."""
    stand_ins = _StandIns(ctx)
    positional = [stand_ins.of(arg) for arg in args]
    named = {name: stand_ins.of(value) for name, value in kwargs.items()}
    try:
        with _Stopping():
            operation(*positional, **named)
    except _Seen as seen:
        function, types, given, keywords = seen.asked
        values = tuple(map(stand_ins.value, given))
        names = None if keywords is None else {name: stand_ins.value(value) for name, value in keywords.items()}
        return OverridableCall(ctx.known(function), types, values, names)
    except Exception as error:
        raise Break(UNSUPPORTED_TENSOR, f"an operation on a subclass that raises {type(error).__name__}") from None
    raise Break(UNSUPPORTED_TENSOR, "an operation on a subclass that torch asks nobody about")
