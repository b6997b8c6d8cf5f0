"""Python's operators on values: arithmetic, comparison, identity, truth."""

import operator
from collections.abc import Callable

from .constant import Constant, Known, fold
from .functions import FunctionValue
from .guard import Kind
from .mappings import DictValue, DictView, SetValue
from .objects import ObjectValue
from .reasons import UNSUPPORTED_OPERATION, Break
from .scalar import SizeValue
from .sequences import ListValue, SequenceValue, TupleValue
from .source import Injected
from .tensor import TensorValue
from .value import CaptureContext, Raised, Value

_FUNCTIONS: dict[str, tuple[Callable[..., object], Callable[..., object], str]] = {
    "+": (operator.add, operator.iadd, "add"),
    "-": (operator.sub, operator.isub, "sub"),
    "*": (operator.mul, operator.imul, "mul"),
    "/": (operator.truediv, operator.itruediv, "truediv"),
    "//": (operator.floordiv, operator.ifloordiv, "floordiv"),
    "%": (operator.mod, operator.imod, "mod"),
    "**": (operator.pow, operator.ipow, "pow"),
    "@": (operator.matmul, operator.imatmul, "matmul"),
    "<<": (operator.lshift, operator.ilshift, "lshift"),
    ">>": (operator.rshift, operator.irshift, "rshift"),
    "&": (operator.and_, operator.iand, "and"),
    "|": (operator.or_, operator.ior, "or"),
    "^": (operator.xor, operator.ixor, "xor"),
}
_COMPARISONS: dict[str, tuple[Callable[..., object], str, str]] = {
    "==": (operator.eq, "__eq__", "__eq__"),
    "!=": (operator.ne, "__ne__", "__ne__"),
    "<": (operator.lt, "__lt__", "__gt__"),
    "<=": (operator.le, "__le__", "__ge__"),
    ">": (operator.gt, "__gt__", "__lt__"),
    ">=": (operator.ge, "__ge__", "__le__"),
}
_UNARY: dict[str, tuple[Callable[..., object], str]] = {
    "-": (operator.neg, "__neg__"),
    "+": (operator.pos, "__pos__"),
    "~": (operator.invert, "__invert__"),
}
_SET_METHODS = {"|": "union", "&": "intersection", "-": "difference", "^": "symmetric_difference"}


def binary(ctx: CaptureContext, symbol: str, left: Value, right: Value, *, inplace: bool = False) -> Value:
    """Evaluate `left <symbol> right`, or `left <symbol>= right`."""
    left, right = ctx.real(left), ctx.real(right)
    plain, assigning, name = _FUNCTIONS[symbol]
    if isinstance(left, ObjectValue) or isinstance(right, ObjectValue):
        found = _by_method(ctx, name, left, right, inplace)
        if found is not None:
            return found
        plain_objects = [v for v in (left, right) if isinstance(v, ObjectValue) and v.contents is None]
        if plain_objects and not isinstance(left, TensorValue) and not isinstance(right, TensorValue):
            names = f"'{left.python_type().__name__}' and '{right.python_type().__name__}'"
            ctx.throw(TypeError, f"unsupported operand type(s) for {symbol}{'=' if inplace else ''}: {names}")
    if isinstance(left, SizeValue) or isinstance(right, SizeValue):
        sizes = _sizes(left, right)
        if sizes is not None and symbol != "@":
            return fold(ctx, plain, *sizes)
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        in_place = inplace and isinstance(left, TensorValue)
        return ctx.call_torch("call_function", assigning if in_place else plain, [left, right], {})
    found = _on_containers(ctx, symbol, left, right, inplace)
    if found is not None:
        return found
    if left.is_constant() and right.is_constant():
        return fold(ctx, plain, left.constant(), right.constant())
    raise Break(UNSUPPORTED_OPERATION, f"{left.describe()} {symbol} {right.describe()}")


def _on_containers(ctx: CaptureContext, symbol: str, left: Value, right: Value, inplace: bool) -> Value | None:
    if isinstance(left, ListValue) and inplace and symbol in "+*":
        if symbol == "+":
            left.call_method(ctx, "extend", [right], {})
        else:
            left.items[:] = left.items * _count(ctx, right)
            ctx.mutated(left)
        return left
    if isinstance(left, SequenceValue) and isinstance(right, SequenceValue) and symbol == "+":
        if isinstance(left, ListValue) != isinstance(right, ListValue):
            ctx.throw(TypeError, f'can only concatenate {left.kind.__name__} (not "{right.kind.__name__}")')
        return left.sliced([*left.items, *right.items])
    if symbol == "*" and isinstance(left, Constant) and isinstance(right, SequenceValue):
        left, right = right, left
    if symbol == "*" and isinstance(left, SequenceValue):
        return left.sliced(left.items * _count(ctx, right))
    if isinstance(left, DictValue) and isinstance(right, DictValue) and symbol == "|":
        target = left if inplace else left.call_method(ctx, "copy", [], {})
        target.call_method(ctx, "update", [right], {})
        return target
    if isinstance(left, DictView) and symbol in _SET_METHODS:
        left = SetValue.of(ctx, left.elements(ctx))
    if isinstance(left, SetValue) and symbol in _SET_METHODS and isinstance(right, SetValue | DictView):
        made = left.call_method(ctx, _SET_METHODS[symbol], [right], {})
        if not inplace or left.kind is frozenset:
            return made
        for member in list(left.members.values()):
            left.discard(ctx, member)
        assert isinstance(made, SetValue)
        for member in made.members.values():
            left.add(ctx, member)
        return left
    return None


def _count(ctx: CaptureContext, value: Value) -> int:
    if not (isinstance(value, Constant) and isinstance(value.value, int)):
        ctx.throw(TypeError, "can't multiply sequence by non-int")
    return value.value


def _by_method(ctx: CaptureContext, name: str, left: Value, right: Value, inplace: bool) -> Value | None:
    attempts: list[tuple[Value, str, Value]] = []
    if inplace:
        attempts.append((left, f"__i{name}__", right))
    attempts += [(left, f"__{name}__", right), (right, f"__r{name}__", left)]
    reflected_first = (
        isinstance(left, ObjectValue) and isinstance(right, ObjectValue) and left.kind is not right.kind
        and issubclass(right.kind, left.kind)
    )
    if reflected_first:
        attempts.insert(0, attempts.pop())
    for owner, method_name, other in attempts:
        if not isinstance(owner, ObjectValue):
            continue
        method = owner.method(ctx, method_name)
        if method is None:
            continue
        result = ctx.real(ctx.call(method, [other], {}))
        if not (isinstance(result, Constant) and result.value is NotImplemented):
            return result
    return None


def _sizes(*values: Value) -> list[object] | None:
    """Return the numbers, symbolic ones as torch's symbols; None if one of the values is no number."""
    found: list[object] = []
    for value in values:
        if isinstance(value, SizeValue):
            found.append(value.operand())
        elif isinstance(value, Constant) and isinstance(value.value, int | float):
            found.append(value.value)
        else:
            return None
    return found


def unary(ctx: CaptureContext, symbol: str, value: Value) -> Value:
    """Evaluate `-value`, `+value` or `~value`."""
    value = ctx.real(value)
    function, method_name = _UNARY[symbol]
    if isinstance(value, SizeValue) and symbol != "~":
        return fold(ctx, function, value.operand())
    if isinstance(value, TensorValue):
        return ctx.call_torch("call_function", function, [value], {})
    if isinstance(value, ObjectValue):
        method = value.method(ctx, method_name)
        if method is not None:
            return ctx.call(method, [], {})
    if value.is_constant():
        return fold(ctx, function, value.constant())
    raise Break(UNSUPPORTED_OPERATION, f"{symbol}{value.describe()}")


def compare(ctx: CaptureContext, symbol: str, left: Value, right: Value) -> Value:
    """Evaluate a comparison."""
    left, right = ctx.real(left), ctx.real(right)
    function, method, reflected = _COMPARISONS[symbol]
    if isinstance(left, ObjectValue) or isinstance(right, ObjectValue):
        found = _compare_objects(ctx, symbol, left, right, method, reflected)
        if found is not None:
            return found
    if isinstance(left, SizeValue) or isinstance(right, SizeValue):
        sizes = _sizes(left, right)
        if sizes is not None:
            return fold(ctx, function, *sizes)
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        other = right if isinstance(left, TensorValue) else left
        if symbol in ("==", "!=") and isinstance(other, Constant) and (other.value is None or type(other.value) is str):
            return Constant(symbol == "!=")
        return ctx.call_torch("call_function", function, [left, right], {})
    if isinstance(left, SequenceValue) and isinstance(right, SequenceValue):
        return _compare_sequences(ctx, symbol, left, right)
    if isinstance(left, DictView):
        left = SetValue.of(ctx, left.elements(ctx))
    if isinstance(right, DictView):
        right = SetValue.of(ctx, right.elements(ctx))
    if isinstance(left, SetValue) and isinstance(right, SetValue):
        return Constant(bool(function(set(left.members), set(right.members))))
    if isinstance(left, DictValue) and isinstance(right, DictValue) and symbol in ("==", "!="):
        return Constant(_equal_dicts(ctx, left, right) == (symbol == "=="))
    if left.is_constant() and right.is_constant():
        return fold(ctx, function, left.constant(), right.constant())
    if symbol in ("==", "!="):
        return Constant(_same_kindless(ctx, left, right) == (symbol == "=="))
    raise Break(UNSUPPORTED_OPERATION, f"{left.describe()} {symbol} {right.describe()}")


_BY_IDENTITY = (Constant, Known, FunctionValue, ListValue, TupleValue, DictValue, SetValue)


def _same_kindless(ctx: CaptureContext, left: Value, right: Value) -> bool:
    """Compare values of unlike kinds, or functions: equal only if they are one object."""
    simple = isinstance(left, _BY_IDENTITY) or isinstance(right, _BY_IDENTITY) or (left.is_constant())
    if not simple:
        raise Break(UNSUPPORTED_OPERATION, f"{left.describe()} == {right.describe()}")
    return is_same(ctx, left, right)


def _compare_objects(
    ctx: CaptureContext, symbol: str, left: Value, right: Value, method: str, reflected: str
) -> Value | None:
    attempts = [(left, method, right), (right, reflected, left)]
    for owner, name, other in attempts:
        if not isinstance(owner, ObjectValue):
            continue
        found = owner.method(ctx, name)
        if found is None and name == "__ne__" and owner.method(ctx, "__eq__") is not None:
            equal = _compare_objects(ctx, "==", left, right, "__eq__", "__eq__")
            return Constant(not equal.truth(ctx)) if equal is not None else None
        if found is None:
            continue
        result = ctx.real(ctx.call(found, [other], {}))
        if not (isinstance(result, Constant) and result.value is NotImplemented):
            return result
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        return None
    contents = [v.contents for v in (left, right) if isinstance(v, ObjectValue) and v.contents is not None]
    if contents:
        return compare(ctx, symbol, *(getattr(v, "contents", None) or v for v in (left, right)))
    if symbol in ("==", "!="):
        return Constant(is_same(ctx, left, right) == (symbol == "=="))
    names = f"'{left.python_type().__name__}' and '{right.python_type().__name__}'"
    ctx.throw(TypeError, f"'{symbol}' not supported between instances of {names}")


def _compare_sequences(ctx: CaptureContext, symbol: str, left: SequenceValue, right: SequenceValue) -> Value:
    if isinstance(left, ListValue) != isinstance(right, ListValue):
        if symbol in ("==", "!="):
            return Constant(symbol == "!=")
        ctx.throw(TypeError, f"'{symbol}' not supported between these sequences")
    first, second = left.elements(ctx), right.elements(ctx)
    if symbol in ("==", "!="):
        same = len(first) == len(second) and all(ctx.equal(a, b) for a, b in zip(first, second, strict=True))
        return Constant(same == (symbol == "=="))
    for a, b in zip(first, second, strict=False):
        if not ctx.equal(a, b):
            return compare(ctx, symbol, a, b)
    return Constant(bool(_COMPARISONS[symbol][0](len(first), len(second))))


def _equal_dicts(ctx: CaptureContext, left: DictValue, right: DictValue) -> bool:
    first, second = left.read_all(ctx), right.read_all(ctx)
    if first.keys() != second.keys():
        return False
    return all(ctx.equal(ctx.real(entry.value), ctx.real(second[token].value)) for token, entry in first.items())


def is_same(ctx: CaptureContext, left: Value, right: Value) -> bool:
    """Evaluate `left is right`, guarding what makes the answer hold."""
    left, right = ctx.real(left), ctx.real(right)
    same = left.identity() is right.identity()
    for value in (left, right):
        known_by_code = isinstance(value, FunctionValue) and value.real is not None
        if known_by_code and value.source is not None and not isinstance(value.source, Injected):
            ctx.guard(value.source, Kind.IDENTITY, value.identity())
    both_from_outside = left.source is not None and right.source is not None
    if not same and both_from_outside and left.python_type() is right.python_type() and not left.is_constant():
        ctx.guard(None, Kind.DISTINCT, "distinct", (left.source, right.source))  # type: ignore[arg-type]  # not None
    return same


def equal(ctx: CaptureContext, left: Value, right: Value) -> bool:
    """Evaluate `left is right or left == right`."""
    left, right = ctx.real(left), ctx.real(right)
    if left.identity() is right.identity():
        return True
    return ctx.real(compare(ctx, "==", left, right)).truth(ctx)


def unpack(ctx: CaptureContext, value: Value) -> list[Value]:
    """Evaluate `list(value)`."""
    value = ctx.real(value)
    if isinstance(value, SequenceValue):
        return value.elements(ctx)
    iterator = ctx.real(value.iterate(ctx))
    found: list[Value] = []
    while True:
        try:
            found.append(ctx.real(iterator.next(ctx)))
        except Raised as raised:
            if issubclass(raised.value.python_type(), StopIteration):
                return found
            raise
        if len(found) > 100_000:
            raise Break(UNSUPPORTED_OPERATION, "an iterator of more than 100000 elements")
