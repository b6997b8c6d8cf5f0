"""Functions of `torch.jit.script`: the Python that one was made of is evaluated, where both mean the same.

TorchScript keeps what it found when it compiled: functions, numbers of modules, what a closure held, and that it is
scripting. It copies lists and dictionaries that enter, turns whole numbers into floats where floats are declared,
rounds to floats, and raises errors of its own: such calls break.
"""

import dis
import types
from collections.abc import Iterator

import torch

from ..constant import Constant
from ..guard import GuardKind
from ..python.objects.instances import OpaqueValue
from ..rule_tables import wraps_type
from ..source import Injected, Source
from ..value import Arguments, CaptureContext, Keywords, Value
from .tensor import TensorValue

_KEPT_BY_SCRIPTS = (int, float, complex, bool, str, tuple, list, dict, torch.device, torch.dtype)
_OF_NUMBERS: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}


class ScriptedFunctionValue(OpaqueValue):
    """A function that TorchScript compiled."""

    always_true = True

    def describe(self) -> str:
        """Return the function's name."""
        return f"scripted function {getattr(self.real, 'name', '')}"

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate its Python; break at the call where TorchScript may do something else."""
        function = original_of(self.real)
        bound = None if function is None else self._bound(ctx, args, kwargs)
        if bound is None:
            return super().call(ctx, args, kwargs)
        return ctx.call(ctx.wrap(function, Injected(function)), bound, {})

    def _bound(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> list[Value] | None:
        """Return the arguments in the order of the schema, with its defaults; None where one would be converted."""
        given, bound = dict(kwargs), list(args)
        parameters = self.real.schema.arguments  # type: ignore[attr-defined]  # a ScriptFunction
        for parameter in parameters[len(bound) :]:
            if parameter.name in given:
                bound.append(given.pop(parameter.name))
            elif parameter.has_default_value():
                bound.append(Constant(parameter.default_value))
            else:
                return None
        values = [ctx.realize(value) for value in bound]
        fits = len(values) == len(parameters) and not given
        taken = fits and all(_is_taken(value, str(one.type)) for value, one in zip(values, parameters, strict=True))
        return values if taken else None


def _is_taken(value: Value, declared: str) -> bool:
    """Return whether TorchScript takes a value as it is for what is declared."""
    if declared.startswith("Optional["):
        return value.python_type() is type(None) or _is_taken(value, declared[len("Optional[") : -1])
    if declared == "Tensor":
        return isinstance(value, TensorValue) and value.python_type() in (torch.Tensor, torch.nn.Parameter)
    return value.python_type() is _OF_NUMBERS.get(declared)


def original_of(scripted: object) -> types.FunctionType | None:
    """Return the Python function of a scripted one; None where it may mean something else than its script."""
    original = getattr(scripted, "_torchdynamo_inline", None)  # torch leaves it there for compilers
    if not isinstance(original, types.FunctionType) or original.__closure__ or _raises_or_rounds(original.__code__):
        return None
    names = set(_names_read(original.__code__))
    named = [original.__globals__[name] for name in names if name in original.__globals__]
    return None if "is_scripting" in names or any(_is_kept(one, names) for one in named) else original


def _is_kept(named: object, names: set[str]) -> bool:
    """Return whether a script that reads these names has kept what one of them was: it may be replaced later."""
    if isinstance(named, types.FunctionType):
        return not _is_of_torch(named.__module__)
    return isinstance(named, types.ModuleType) and _keeps(named, names)


def _is_of_torch(module: str | None) -> bool:
    return str(module).partition(".")[0] in ("torch", "math")


def _keeps(module: types.ModuleType, names: set[str]) -> bool:
    """Return whether a script that reads these names may have kept a value of a module, which may change."""
    if _is_of_torch(module.__name__):
        return False
    return any(isinstance(vars(module).get(name), _KEPT_BY_SCRIPTS) for name in names)


def _raises_or_rounds(code: types.CodeType) -> bool:
    """Return whether code has a `raise`, an `assert` or a `round`, which a script does in its own way."""
    steps = dis.get_instructions(code)
    return any(one.opname == "RAISE_VARARGS" or (one.opname, one.argval) == ("LOAD_GLOBAL", "round") for one in steps)


def _names_read(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_read(constant)


@wraps_type(torch.jit.ScriptFunction)
def _scripted(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.IDENTITY, value)
    return ScriptedFunctionValue(value, source)
