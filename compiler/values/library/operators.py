"""Python's operators on values: arithmetic, comparison, identity, truth."""

import collections
import enum
import operator
import types
from collections.abc import Callable
from typing import Any

from ..constant import Constant, Known, MethodOf, fold
from ..guard import GuardKind
from ..identities import IdentityValue
from ..python.containers.iterators import IteratorValue
from ..python.containers.mappings import DictValue, DictView, ProxyValue, pairs_of
from ..python.containers.sequences import ListValue, SequenceIterator, SequenceValue, TupleValue
from ..python.containers.sets import PLAIN, SetValue, compare_sets, set_operation
from ..python.objects.attributes import bind_raw, class_lookup
from ..python.objects.classes import ClassValue
from ..python.objects.functions import BoundMethod, FunctionValue, PartialValue
from ..python.objects.instances import OF_OWN_CLASS, ObjectValue
from ..reasons import UNSUPPORTED_OPERATION, Break
from ..scalar import SizeValue
from ..source import Injected
from ..torch.tensor import TensorValue
from ..value import CaptureContext, Raised, Value
from .numpy_values import KnownArray, TensorArray

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


def binary(ctx: CaptureContext, symbol: str, left: Value, right: Value, *, inplace: bool = False) -> Value:
    """Evaluate `left <symbol> right`, or `left <symbol>= right`."""
    left, right = ctx.real(left), ctx.real(right)
    plain, assigning, name = _FUNCTIONS[symbol]
    for value in (left, right):
        if isinstance(value, KnownArray | TensorArray):
            return value.operate(ctx, plain, left, right, inplace=inplace)
    for owner in (left, right):
        found = _by_method(ctx, name, left, right, inplace) if _has_methods(owner) else None
        if found is not None:
            return found
    if held(left) is not left or held(right) is not right:
        if any(held(value) is not value and held(value).python_type() in OF_OWN_CLASS for value in (left, right)):
            raise Break(UNSUPPORTED_OPERATION, f"{left.describe()} {symbol} {right.describe()}")
        _refuse_by_name(ctx, symbol, assigning if inplace else plain, left, right)
        made = binary(ctx, symbol, held(left), held(right), inplace=inplace)
        return left if inplace and made is held(left) else made
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
        return fold(ctx, assigning if inplace else plain, left.constant(), right.constant())
    if symbol == "%" and isinstance(left, Constant) and isinstance(left.value, str | bytes):
        return left.call_method(ctx, "__mod__", [right], {})
    left.refuse(ctx, symbol, assigning if inplace else plain, right)


def _refuse_by_name(
    ctx: CaptureContext, symbol: str, function: Callable[..., object], left: Value, right: Value
) -> None:
    """Raise the TypeError for operands of which one is of a subclass, under the subclass's own name."""
    if symbol == "%" and issubclass(left.python_type(), str | bytes):
        return  # its errors are about the text
    try:
        function(left.stand_in(), right.stand_in())
    except TypeError:
        left.refuse(ctx, symbol, function, right)
    except (Exception, Break):
        return


def held(value: Value) -> Value:
    """Return what an instance of a subclass of a builtin type holds, any other value itself."""
    contents = getattr(value, "contents", None)
    return contents if isinstance(contents, Value) else value


def _has_methods(value: Value) -> bool:
    """Return whether the operators of a value may be written in Python."""
    return isinstance(value, ObjectValue | ClassValue) or (
        isinstance(value, Known) and isinstance(value.value, enum.Enum)
    )


def _on_containers(ctx: CaptureContext, symbol: str, left: Value, right: Value, inplace: bool) -> Value | None:
    if isinstance(left, ListValue) and inplace and symbol in "+*":
        if symbol == "+":
            left.call_method(ctx, "extend", [right], {})
        else:
            left.items[:] = left.items * _count(ctx, left, right)
            left.trim(left=False)
            ctx.mutated(left)
        return left
    if isinstance(left, SequenceValue) and symbol == "+":
        same = isinstance(right, SequenceValue) and _family(left) is _family(right)
        return left.sliced([*left.items, *right.items]) if same else None  # type: ignore[attr-defined]  # a sequence
    if symbol == "*" and isinstance(right, SequenceValue) and not isinstance(left, SequenceValue):
        number = ctx.real(left).as_index(ctx)
        odd = inplace and isinstance(left, Known)  # `*=` asks a class made in Python for repetition of its own
        if odd or not (number.is_constant() and isinstance(number.constant(), int)):
            left.refuse(ctx, symbol, operator.imul if inplace else operator.mul, right)
        left, right = right, left
    if symbol == "*" and isinstance(left, SequenceValue):
        return left.sliced(left.items * _count(ctx, left, right))
    if isinstance(left, DictValue | ProxyValue) and isinstance(right, DictValue | ProxyValue) and symbol == "|":
        return _merged(ctx, left, right, inplace)
    if isinstance(left, DictValue) and symbol == "|" and inplace and left.kind is not types.MappingProxyType:
        left.call_method(ctx, "update", [right], {})
        return left
    if symbol in PLAIN and any(map(_is_set_like, (left, right))):
        return set_operation(ctx, symbol, left, right, inplace=inplace)
    return None


def _family(value: Value) -> type:
    return next(kind for kind in (list, tuple, collections.deque, object) if issubclass(value.python_type(), kind))


def _merged(ctx: CaptureContext, left: Value, right: Value, inplace: bool) -> Value:
    """Evaluate `|` of dictionaries; which class the result has, Python itself says."""
    first = left.owner if isinstance(left, ProxyValue) else left
    assert isinstance(first, DictValue)
    if inplace and first is left and first.kind is not types.MappingProxyType:
        first.call_method(ctx, "update", [right], {})
        return first
    mixed: Any = (left.stand_in(), right.stand_in())
    kind = type(mixed[0] | mixed[1])
    made = DictValue.of(ctx, pairs_of(ctx, first), kind)
    made.factory = first.factory if first.kind is kind else getattr(right, "factory", None)
    made.call_method(ctx, "update", [right], {})
    return made


def _count(ctx: CaptureContext, owner: Value, value: Value) -> int:
    value = ctx.real(value).as_index(ctx)
    number = value.constant() if value.is_constant() else None
    if not isinstance(number, int):
        owner.refuse(ctx, "repetition", operator.mul, value)
    return number


def _by_method(ctx: CaptureContext, name: str, left: Value, right: Value, inplace: bool) -> Value | None:
    attempts: list[tuple[Value, str, Value]] = []
    if inplace:
        attempts.append((left, f"__i{name}__", right))
    attempts += [(left, f"__{name}__", right), (right, f"__r{name}__", left)]
    if left.python_type() is right.python_type() and not isinstance(left, ClassValue):
        attempts.pop()  # Python asks the right one only if its class is another
    elif _goes_first(left, right, f"__r{name}__"):
        attempts.insert(0, attempts.pop())
    for owner, method_name, other in attempts:
        method = _method(ctx, owner, method_name)
        if method is None:
            if owner is left and method_name == f"__{name}__" and _answers(left, right, method_name):
                return None
            continue
        result = ctx.real(ctx.call(method, [other], {}))
        if not (isinstance(result, Constant) and result.value is NotImplemented):
            return result
    return None


def _answers(left: Value, right: Value, name: str) -> bool:
    """Return whether a method written in C on the left answers before the right is asked."""
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        return isinstance(left, TensorValue)
    try:
        return getattr(held(left).stand_in(), name)(held(right).stand_in()) is not NotImplemented
    except Break:
        return False
    except Exception:  # it refuses: list + object, say; the right is asked first all the same
        return False


def _goes_first(left: Value, right: Value, reflected: str) -> bool:
    """Return whether the right operand is asked first: its class derives from the left one's and has its own rule."""
    first, second = left.python_type(), right.python_type()
    if first is second or not issubclass(second, first):
        return False
    return class_lookup(second, reflected)[1] is not class_lookup(first, reflected)[1]


def _method(ctx: CaptureContext, owner: Value, name: str) -> Value | None:
    """Return a special method written in Python, bound; None if there is none."""
    if isinstance(owner, ObjectValue):
        return owner.method(ctx, name)
    if not _has_methods(owner):
        return None
    kind = owner.python_type()
    found, raw = class_lookup(kind, name)
    if found is None or not isinstance(raw, types.FunctionType) or found.__module__ == "enum":
        return None
    return bind_raw(ctx, raw, found, name, owner, kind)


def _sizes(*values: Value) -> list[object] | None:
    """Return the numbers, symbolic ones as torch's symbols; None if one of the values is not a number."""
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
    method = _method(ctx, value, method_name)
    if method is not None:
        return ctx.call(method, [], {})
    if held(value) is not value:
        try:
            function(value.stand_in())
        except TypeError:
            value.refuse(ctx, symbol, function)
        return unary(ctx, symbol, held(value))
    if value.is_constant():
        return fold(ctx, function, value.constant())
    value.refuse(ctx, symbol, function)


def compare(ctx: CaptureContext, symbol: str, left: Value, right: Value) -> Value:
    """Evaluate a comparison."""
    left, right = ctx.real(left), ctx.real(right)
    function, method, reflected = _COMPARISONS[symbol]
    for value in (left, right):
        if isinstance(value, KnownArray | TensorArray):
            return value.operate(ctx, function, left, right, inplace=False)
    if _has_methods(left) or _has_methods(right):
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
    if any(_is_set_like(value) for value in (left, right)) and left is not right:
        if not (_is_set_like(left) and _is_set_like(right)) and symbol not in ("==", "!="):
            left.refuse(ctx, symbol, function, right)
        return compare_sets(ctx, function, left, right)
    left, right = (value.owner if isinstance(value, ProxyValue) else value for value in (left, right))
    if isinstance(left, DictValue) and isinstance(right, DictValue) and symbol in ("==", "!="):
        return Constant(_equal_dicts(ctx, left, right) == (symbol == "=="))
    if left.is_constant() and right.is_constant():
        return fold(ctx, function, left.constant(), right.constant())
    if isinstance(left, IdentityValue) and isinstance(right, IdentityValue) and symbol in ("==", "!="):
        return Constant(left.same(ctx, right) == (symbol == "=="))
    if isinstance(left, IdentityValue) or isinstance(right, IdentityValue):
        raise Break(UNSUPPORTED_OPERATION, f"{left.describe()} {symbol} {right.describe()}, where one is an id()")
    if symbol in ("==", "!="):
        return Constant(_same_kindless(ctx, left, right) == (symbol == "=="))
    left.refuse(ctx, symbol, function, right)


def _is_set_like(value: Value) -> bool:
    return isinstance(value, SetValue) or (isinstance(value, DictView) and value.part != "values")


_BY_IDENTITY = (
    Constant,
    Known,
    FunctionValue,
    ListValue,
    TupleValue,
    DictValue,
    SetValue,
    DictView,
    ClassValue,
    BoundMethod,
    PartialValue,
    SequenceIterator,
    SizeValue,
    MethodOf,
    IteratorValue,
)


def _same_kindless(ctx: CaptureContext, left: Value, right: Value) -> bool:
    """Compare values of unlike kinds, or functions: equal only if they are one object."""
    if isinstance(left, BoundMethod) and isinstance(right, BoundMethod):
        return is_same(ctx, left.function, right.function) and is_same(ctx, left.owner, right.owner)
    if not (isinstance(left, _BY_IDENTITY) and isinstance(right, _BY_IDENTITY)) and left is not right:
        raise Break(UNSUPPORTED_OPERATION, f"{left.describe()} == {right.describe()}")
    return is_same(ctx, left, right)


def _compare_objects(
    ctx: CaptureContext, symbol: str, left: Value, right: Value, method: str, reflected: str
) -> Value | None:
    attempts = [(left, method, right), (right, reflected, left)]
    if left.python_type() is not right.python_type() and issubclass(right.python_type(), left.python_type()):
        attempts.reverse()
    for owner, name, other in attempts:
        found = _method(ctx, owner, name)
        if found is None and name == "__ne__" and _method(ctx, owner, "__eq__") is not None:
            equal = ctx.real(ctx.call(_method(ctx, owner, "__eq__"), [other], {}))  # type: ignore[arg-type]  # not None
            if isinstance(equal, Constant) and equal.value is NotImplemented:
                continue
            return Constant(not equal.truth(ctx))
        if found is None:
            continue
        result = ctx.real(ctx.call(found, [other], {}))
        if not (isinstance(result, Constant) and result.value is NotImplemented):
            return result
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        return None
    if held(left) is not left or held(right) is not right:
        _refuse_by_name(ctx, symbol, _COMPARISONS[symbol][0], left, right)
        return compare(ctx, symbol, held(left), held(right))
    if not isinstance(left, ObjectValue) and not isinstance(right, ObjectValue):
        return None
    spaces = [v.namespace for v in (left, right) if isinstance(v, ObjectValue) and _is_plain_space(v)]
    if len(spaces) == 2 and symbol in ("==", "!="):
        return Constant(_equal_dicts(ctx, *spaces) == (symbol == "=="))
    if symbol in ("==", "!="):
        if _compares_in_c(left) or _compares_in_c(right):
            raise Break(UNSUPPORTED_OPERATION, f"{left.describe()} {symbol} {right.describe()}")
        return Constant(is_same(ctx, left, right) == (symbol == "=="))
    left.refuse(ctx, symbol, _COMPARISONS[symbol][0], right)


def _is_plain_space(value: ObjectValue) -> bool:
    return class_lookup(value.kind, "__eq__")[0] is types.SimpleNamespace


def _compares_in_c(value: Value) -> bool:
    """Return whether the class has a rule for equality that is written in C."""
    if not isinstance(value, ObjectValue):
        return not isinstance(value, _BY_IDENTITY)
    owner, raw = class_lookup(value.kind, "__eq__")
    return owner not in (object, BaseException, types.SimpleNamespace) and not isinstance(raw, types.FunctionType)


def _compare_sequences(ctx: CaptureContext, symbol: str, left: SequenceValue, right: SequenceValue) -> Value:
    if _family(left) is not _family(right):
        if symbol in ("==", "!="):
            return Constant(symbol == "!=")
        left.refuse(ctx, symbol, _COMPARISONS[symbol][0], right)
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
    if left.kind is right.kind is collections.OrderedDict and list(first) != list(second):
        return False
    return all(ctx.equal(ctx.real(entry.value), ctx.real(second[token].value)) for token, entry in first.items())


def is_same(ctx: CaptureContext, left: Value, right: Value) -> bool:
    """Evaluate `left is right`, guarding what makes the answer hold."""
    left, right = ctx.real(left), ctx.real(right)
    same = left.identity() is right.identity()
    for value in (left, right):
        known_by_code = isinstance(value, FunctionValue) and value.real is not None
        if known_by_code and value.source is not None and not isinstance(value.source, Injected):
            ctx.guard(value.source, GuardKind.IDENTITY, value.identity())
    both_from_outside = left.source is not None and right.source is not None
    if not same and both_from_outside and left.python_type() is right.python_type() and not isinstance(left, Constant):
        ctx.guard(None, GuardKind.DISTINCT, "distinct", (left.source, right.source))  # type: ignore[arg-type]  # not None
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
