"""Python's protocol of operators: which operand is asked first, and what holds where none answers.

What an operator means on one kind of value that kind says itself: `Value.binary`, `Value.compare`, `Value.unary`.
"""

import types
from collections.abc import Callable
from typing import Any

import torch

from ..constant import Constant, fold
from ..identities import is_same
from ..operator_table import BINARY, COMPARISONS, UNARY, Binary, Comparison
from ..reasons import UNSUPPORTED_OPERATION, Break
from ..value import CaptureContext, Value, defines
from .objects.attributes import bind_raw, class_lookup
from .objects.classes import ClassValue
from .objects.instances import OF_OWN_CLASS, ObjectValue

_OF_SEQUENCES = ("__add__", "__mul__")
_OF_SETS = ("__or__", "__and__", "__sub__", "__xor__")
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.items()))
_KEEPS_TEXTS = type(type("Text", (str,), {})("a") % ()) is not str  # whether a text without `%` is given back as it is


def binary(ctx: CaptureContext, symbol: str, left: Value, right: Value, *, inplace: bool = False) -> Value:
    """Evaluate `left <symbol> right`, or `left <symbol>= right`."""
    left, right = ctx.realize(left), ctx.realize(right)
    record = BINARY[symbol]
    function = record.assigning if inplace else record.function
    if left.precedes_methods:
        answer = left.binary(ctx, record, right, False, inplace)
    else:
        answer = right.binary(ctx, record, left, True, inplace) if right.precedes_methods else None
    if answer is None and (left.defines_operators() or right.defines_operators()):
        answer = _by_method(ctx, record.name, left, right, inplace)
    if answer is not None:
        return answer
    if contents_of(left) is not left or contents_of(right) is not right:
        return _on_contents(ctx, record, left, right, inplace)
    answer = left.binary(ctx, record, right, False, inplace)
    answer = answer or right.binary(ctx, record, left, True, inplace)
    answer = answer or _on_sequences(ctx, symbol, left, right, inplace)
    if answer is not None:
        return answer
    if left.is_constant() and right.is_constant():
        return fold(ctx, function, left.constant(), right.constant())
    left.refuse(ctx, symbol, function, right)


def _on_contents(ctx: CaptureContext, record: Binary, left: Value, right: Value, inplace: bool) -> Value:
    """Evaluate an operator that instances of a subclass inherit from the builtin type: on what they hold."""
    text = contents_of(left)
    if record.symbol == "%" and isinstance(text, Constant) and isinstance(text.value, str):
        filled = text.call_method(ctx, "__mod__", [right], {})  # which names the right one's own class in its errors
        return left if _KEEPS_TEXTS and left is not text and "%" not in text.value else filled
    kinds = {contents_of(value).python_type() for value in (left, right) if contents_of(value) is not value}
    if record.symbol == "|":  # which has the class of the one that is asked first
        kinds |= {contents_of(value).python_type() for value in (left, right)}
    if not kinds.isdisjoint(OF_OWN_CLASS):
        raise Break(UNSUPPORTED_OPERATION, f"{left.describe()} {record.symbol} {right.describe()}")
    _refuse_by_name(ctx, record.symbol, record.assigning if inplace else record.function, left, right)
    result = binary(ctx, record.symbol, contents_of(left), contents_of(right), inplace=inplace)
    return left if inplace and result is contents_of(left) else result


def _on_sequences(ctx: CaptureContext, symbol: str, left: Value, right: Value, inplace: bool) -> Value | None:
    """Concatenate or repeat, which Python tries after the operators of numbers."""
    if symbol == "+":
        return left.concatenate(ctx, right, inplace)
    if symbol == "*":
        return left.repeat(ctx, right, False, inplace) or right.repeat(ctx, left, True, inplace)
    return None


def _refuse_by_name(
    ctx: CaptureContext, symbol: str, function: Callable[[Any, Any], object], left: Value, right: Value
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


def contents_of(value: Value) -> Value:
    """Return what an instance of a subclass of a builtin type holds, any other value itself."""
    return value if value.contents is None else value.contents


def _by_method(ctx: CaptureContext, name: str, left: Value, right: Value, inplace: bool) -> Value | None:
    attempts = [(left, f"__{name}__", right), (right, f"__r{name}__", left)]
    if left.python_type() is right.python_type() and not isinstance(left, ClassValue):
        attempts.pop()  # Python asks the right one only if its class is another
    elif _goes_first(left, right, f"__r{name}__"):
        attempts.reverse()
    if inplace:
        if _changes_itself(ctx, left, right, name):
            return None
        attempts.insert(0, (left, f"__i{name}__", right))
    declined = False
    for owner, method_name, other in attempts:
        method = _method(ctx, owner, method_name)
        if method is None:
            if owner is left and method_name == f"__{name}__":
                if _is_sequence(left.contents, method_name) and _method(ctx, left, f"__r{name}__") is not None:
                    return _called_as_method(ctx, left, method_name, right)
                if _answers(left, right, method_name):
                    return None
            continue
        result = ctx.realize(ctx.call(method, [other], {}))
        if not _is_not_implemented(result):
            return result
        declined = declined or owner is left
    if declined and left.contents is not None:
        raise Break(UNSUPPORTED_OPERATION, f"{left.describe()} declines {name}")  # what it inherits is not asked either
    return None


def _changes_itself(ctx: CaptureContext, left: Value, right: Value, name: str) -> bool:
    """Return whether the left operand answers `left <symbol>= right` by a method written in C.

    Sequences are not among them: they join and repeat in place where no operand has an operator of numbers.
    """
    if f"__{name}__" not in _OF_SETS or not defines(left.python_type(), f"__i{name}__"):
        return False
    if _method(ctx, left, f"__i{name}__") is not None:
        return False
    return issubclass(left.python_type(), dict) or (
        issubclass(left.python_type(), set) and issubclass(right.python_type(), set | frozenset)
    )


def _is_sequence(contents: Value | None, method_name: str) -> bool:
    """Return whether a method is one that sequences written in C have under the same name as numbers."""
    kind = object if contents is None else contents.python_type()
    return method_name in _OF_SEQUENCES and defines(kind, method_name) and defines(kind, "__contains__")


def _called_as_method(ctx: CaptureContext, left: Value, method_name: str, right: Value) -> Value:
    """Call `__add__` or `__mul__` of a sequence, as its class's `__radd__` or `__rmul__` makes Python do at once."""
    _refuse_by_name(ctx, method_name, lambda own, other: getattr(own, method_name)(other), left, right)
    return contents_of(left).call_method(ctx, method_name, [right], {})


def _answers(left: Value, right: Value, method_name: str) -> bool:
    """Return whether the left operand answers by a method written in C, so that the right one is not asked."""
    if method_name == "__mod__" and issubclass(left.python_type(), str | bytes | bytearray):
        return True  # a text formats whatever it is given, or refuses it
    if method_name in _OF_SETS and issubclass(left.python_type(), _VIEWS):
        return True  # a view iterates over whatever it is given, or refuses it
    is_sequence = defines(left.python_type(), "__contains__") and not issubclass(left.python_type(), torch.Tensor)
    if method_name in _OF_SEQUENCES and is_sequence:
        return False  # a sequence is joined or repeated where no operand adds or multiplies
    return contents_of(left).answers_operator(contents_of(right), method_name)


def _is_not_implemented(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is NotImplemented


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
    if not owner.defines_operators():
        return None
    kind = owner.python_type()
    base, raw = class_lookup(kind, name)
    if base is not None and raw is None:
        return Constant(None)  # which Python calls
    if base is None or not isinstance(raw, types.FunctionType) or base.__module__ == "enum":
        return None
    return bind_raw(ctx, raw, base, name, owner, kind)


def unary(ctx: CaptureContext, symbol: str, value: Value) -> Value:
    """Evaluate `-value`, `+value` or `~value`."""
    value = ctx.realize(value)
    record = UNARY[symbol]
    answer = value.unary(ctx, record)
    if answer is not None:
        return answer
    method = _method(ctx, value, record.method)
    if method is not None:
        return ctx.call(method, [], {})
    if contents_of(value) is not value:
        try:
            record.function(value.stand_in())
        except TypeError:
            value.refuse(ctx, symbol, record.function)
        return unary(ctx, symbol, contents_of(value))
    if value.is_constant():
        return fold(ctx, record.function, value.constant())
    value.refuse(ctx, symbol, record.function)


def compare(ctx: CaptureContext, symbol: str, left: Value, right: Value) -> Value:
    """Evaluate a comparison."""
    left, right = ctx.realize(left), ctx.realize(right)
    record = COMPARISONS[symbol]
    if left.python_type() is types.MappingProxyType and isinstance(right, ObjectValue):
        raise Break(UNSUPPORTED_OPERATION, "a mapping proxy compared, which asks the other side as its mapping")
    if left.precedes_methods:
        answer = left.compare(ctx, record, right, False)
    else:
        answer = right.compare(ctx, record, left, True) if right.precedes_methods else None
    if answer is None and (left.defines_operators() or right.defines_operators()):
        answer = _compared_by_method(ctx, record, left, right)
    orders = left.python_type() is tuple or (left.python_type() is dict and record.asks_equality)
    if answer is None and orders and _is_of_derived_class(right, left):
        return _compared_natively(ctx, COMPARISONS[record.turned], right, left)  # such as torch.Size: it is asked first
    return answer or _compared_natively(ctx, record, left, right)


def _compared_natively(ctx: CaptureContext, record: Comparison, left: Value, right: Value) -> Value:
    """Evaluate a comparison that no method written in Python answers."""
    symbol = record.symbol
    if any(_is_numpys(one) and _is_of_subclass(other) for one, other in ((left, right), (right, left))):
        raise Break(UNSUPPORTED_OPERATION, f"{left.describe()} {symbol} {right.describe()}")
    answer = left.compare(ctx, record, right, False) or right.compare(ctx, record, left, True)
    if answer is not None:
        return answer
    if contents_of(left) is not left or contents_of(right) is not right:
        _refuse_by_name(ctx, symbol, record.function, left, right)
        return compare(ctx, symbol, contents_of(left), contents_of(right))
    if left.is_constant() and right.is_constant():
        return fold(ctx, record.function, left.constant(), right.constant())
    if not record.asks_equality:
        left.refuse(ctx, symbol, record.function, right)
    if not (left.equal_by_identity and right.equal_by_identity):  # a NaN of C's is not even equal to itself
        raise Break(UNSUPPORTED_OPERATION, f"{left.describe()} {symbol} {right.describe()}")
    return Constant(is_same(ctx, left, right) == (symbol == "=="))


def _is_numpys(value: Value) -> bool:
    """Return whether NumPy compares it: by the class of the other side, not by what an instance of that holds."""
    return value.python_type().__module__.partition(".")[0] == "numpy"


def _is_of_subclass(value: Value) -> bool:
    kind = value.python_type()
    return contents_of(value) is not value or (issubclass(kind, tuple | dict) and kind not in (tuple, dict))


def _compared_by_method(ctx: CaptureContext, record: Comparison, left: Value, right: Value) -> Value | None:
    """Ask the operands in Python's order; None where neither answers.

    An instance of a class derived from the other operand's comes first even where it inherits the method, so that the
    operator is the reflected one. Without `__ne__` Python turns the answer of `__eq__` round.
    """
    attempts = [(left, record, right), (right, COMPARISONS[record.turned], left)]
    if _is_of_derived_class(right, left):
        attempts.reverse()
    declined = False
    for owner, asked, other in attempts:
        method = _method(ctx, owner, asked.method)
        inherited = class_lookup(owner.python_type(), asked.method)[0] is object
        equality = _method(ctx, owner, "__eq__") if inherited and asked.symbol == "!=" else None
        if equality is not None:
            equal_to_other = ctx.realize(ctx.call(equality, [other], {}))
            if not _is_not_implemented(equal_to_other):
                return Constant(not equal_to_other.truth(ctx))
        if method is not None:
            result = ctx.realize(ctx.call(method, [other], {}))
            if not _is_not_implemented(result):
                return result
            declined = declined or owner.contents is not None
        elif equality is None and _answers(owner, other, asked.method):
            return _compared_natively(ctx, asked, owner, other)  # before the other operand is asked
    if not declined:
        return None
    if not record.asks_equality:
        raise Break(UNSUPPORTED_OPERATION, f"{left.describe()} {record.symbol} {right.describe()}, which both decline")
    return Constant(is_same(ctx, left, right) == (record.symbol == "=="))  # what it inherits is not asked either


def _is_of_derived_class(value: Value, other: Value) -> bool:
    """Return whether the class of a value is derived from the other's."""
    kind = value.python_type()
    return kind is not other.python_type() and other.python_type() in kind.__mro__  # a metaclass is not asked


def equal(ctx: CaptureContext, left: Value, right: Value) -> bool:
    """Evaluate `left is right or left == right`."""
    left, right = ctx.realize(left), ctx.realize(right)
    if _is_nan(left) and _is_nan(right):
        return is_same(ctx, left, right)
    if left.identity() is right.identity():
        return True
    return ctx.realize(compare(ctx, "==", left, right)).truth(ctx)


def _is_nan(value: Value) -> bool:
    """Return whether a value is known to be unequal to itself: containers find it by its identity alone."""
    return isinstance(value, Constant) and isinstance(value.value, float | complex) and value.value != value.value
