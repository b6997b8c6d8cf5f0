"""Text of values: `str`, `repr`, `format` and the formatting of strings.

Python itself makes the text, from real objects that ask the program wherever a class has words of its own.
"""

import collections
import sys
import types
from typing import Any, NoReturn

from ..constant import Constant, Known, fold, string_method
from ..reasons import BUILTIN_METHOD, TEXT, Break
from ..rule_tables import calls
from ..value import Arguments, CaptureContext, Keywords, Raised, Value, defines
from .containers.mappings import DictValue
from .containers.sets import SetValue
from .containers.tuples import TupleValue
from .objects.attributes import MISSING, class_lookup, guard_description, is_native, name_in_errors, told_name
from .objects.classes import constructs
from .objects.exception_groups import GroupValue
from .objects.exceptions import ExceptionValue, native_of
from .objects.instances import ObjectValue


class Shown:
    """Stands for a value where text is made: its words are those of the evaluated program."""

    def __init__(self, ctx: CaptureContext, value: Value) -> None:
        self._asked = (ctx, value)

    def __str__(self) -> str:
        return _real_text(text_of(*self._asked, "__str__"))

    def __repr__(self) -> str:
        return _real_text(text_of(*self._asked, "__repr__"))

    def __format__(self, specification: str) -> str:
        return _real_text(formatted(*self._asked, specification))

    def __getattr__(self, name: str) -> object:
        ctx, value = self._asked
        if name.startswith("__"):
            raise AttributeError(name)
        return shown(ctx, value.get_attr(ctx, name))

    def item(self, key: object) -> object:
        """Evaluate `value[key]`."""
        ctx, value = self._asked
        return shown(ctx, value.get_item(ctx, ctx.known(key)))


def _real_text(value: Value) -> str:
    text = value.constant()
    assert isinstance(text, str)
    return text


_NUMBERS = (
    "__int__",
    "__float__",
    "__index__",
    "__complex__",
    "__floor__",
    "__ceil__",
    "__trunc__",
    "__bytes__",
    "__fspath__",
)


_ITEMS = ("__getitem__", "__missing__")


def number_of(ctx: CaptureContext, value: ObjectValue) -> Any:
    """Return a real object with the number that an object stands for, which asks the program where its class does."""
    if value.contents is not None and _contents(value.contents) is None:
        raise Break(TEXT, f"what {value.describe()} holds")
    asks = value.contents is not None or any(value.method(ctx, name) is not None for name in _NUMBERS)
    return _shown_object(ctx, value) if asks else value.stand_in()


def _contents(value: Value) -> Any:
    """Return the known object that an instance of a subclass holds, None if it is not known."""
    return value.constant() if value.is_constant() else None  # a number that varies is fixed here


def _number(name: str) -> Any:
    def convert(self: Shown) -> object:
        ctx, value = self._asked
        return ctx.realize(value.call_method(ctx, name, [], {})).constant()

    return convert


def _shown_object(ctx: CaptureContext, value: Value) -> object:
    """Return an object of a class of the same name that asks the program; Python reads past it what it holds."""
    kind = value.python_type()
    contents = None if value.contents is None else _contents(value.contents)
    namespace: dict[str, object] = {}
    for name in (*_NUMBERS, *_ITEMS):
        owner, raw = class_lookup(kind, name)  # what has no `__getitem__` is not a mapping for `%`
        if owner is not None and not (contents is not None and is_native(owner)):
            namespace[name] = None if raw is None else Shown.item if name in _ITEMS else _number(name)
    asking = type(name_in_errors(kind), (Shown, *(() if contents is None else (type(contents),))), namespace)
    return made_of(asking, contents, ctx, value)


def made_of(kind: Any, contents: Any, *args: object) -> object:
    """Return an instance of a subclass of a builtin type that holds what `contents` does; None: it holds nothing."""
    if contents is None:
        return kind(*args)
    base: Any = type(contents)
    made = base.__new__(kind) if base in (list, dict, set) else base.__new__(kind, contents)
    if base in (list, dict, set):
        base.__init__(made, contents)
    if args:
        kind.__init__(made, *args)
    return made


def shown(ctx: CaptureContext, value: Value, seen: dict[int, object] | None = None) -> Any:
    """Return a real object with the text of a value: the object itself, or one that asks the program."""
    value = ctx.realize(value)
    guard_description(value.python_type(), "__name__")
    seen = {} if seen is None else seen
    if id(value) in seen:
        return seen[id(value)]
    if not isinstance(value, TupleValue) or _has_native_text(value.kind):
        container = value.mirrored(lambda part: shown(ctx, part, seen), seen, ctx)
        if container is not None:
            return container
    if not value.is_constant():
        return _shown_object(ctx, value)
    if isinstance(value, SetValue):
        return _shown_set(ctx, value)
    known = value.constant()
    for part in (known, *(known.__args__ if isinstance(known, types.GenericAlias) else ())):
        if isinstance(part, type):
            guard_description(part, "__module__", "__qualname__")
    if isinstance(known, types.ModuleType) and sys.modules.get(known.__name__) is not known:
        value.unsupported("the text of a module, which tells its file and loader", TEXT)
    if isinstance(value, Known):
        value.guard_member(ctx)
    return known


def _shown_set(ctx: CaptureContext, value: SetValue) -> object:
    """Return an object with the text of a set, whose members stand in the order in which the program's lie."""
    members = ", ".join(repr(shown(ctx, member)) for member in value.ordered(ctx))
    text = f"{{{members}}}" if members else ""
    text = text if text and value.kind is set else f"{value.kind.__name__}({text})"
    return type(value.kind.__name__, (value.kind,), {"__repr__": lambda self: text})()


def _has_native_text(kind: type) -> bool:
    """Return whether a tuple class has the text of tuples or of named tuples, not words of the user's."""
    for name in ("__repr__", "__str__", "__format__"):
        raw = class_lookup(kind, name)[1]
        if isinstance(raw, types.FunctionType) and not raw.__qualname__.startswith("namedtuple."):
            return raw.__qualname__ == "__repr__" and defines(kind, "_fields") and raw.__module__ == "collections"
    return True


@constructs(str)
def _str(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    if not args and not kwargs:
        return Constant("")
    if len(args) == 1 and not kwargs:
        return text_of(ctx, ctx.realize(args[0]), "__str__")
    reals = [shown(ctx, arg) for arg in args]
    return fold(ctx, str, *reals, **{name: shown(ctx, value) for name, value in kwargs.items()})


@calls(repr)
def _repr(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return text_of(ctx, ctx.realize(args[0]), "__repr__")


@calls(ascii)
def _ascii(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return fold(ctx, ascii, shown(ctx, args[0]))


@calls(format)
def _format(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return formatted(ctx, ctx.realize(args[0]), shown(ctx, args[1]) if len(args) > 1 else "")


def text_of(ctx: CaptureContext, value: Value, method_name: str) -> Value:
    """Evaluate str() or repr()."""
    if isinstance(value, ObjectValue):
        return _text_of_object(ctx, value, method_name)
    if not value.has_text:
        value.unsupported(f"{method_name}()", TEXT)
    real = shown(ctx, value)
    if isinstance(real, Shown):
        value.unsupported(f"{method_name}()", TEXT)
    return fold(ctx, str if method_name == "__str__" else repr, real)


_TELL_THEIR_CLASS = (collections.OrderedDict, collections.defaultdict, collections.deque, set, frozenset)


def _text_of_object(ctx: CaptureContext, value: ObjectValue, method_name: str) -> Value:
    for name in (method_name, "__repr__"):
        owner = class_lookup(value.kind, name)[0]
        method = value.method(ctx, name)
        if method is not None:
            answer = ctx.realize(ctx.call(method, [], {}))
            if not issubclass(answer.python_type(), str):
                kind = told_name(answer.python_type())
                ctx.throw(TypeError, f"{name} returned non-string (type {kind})")
            return answer
        if owner is not object and isinstance(value, ExceptionValue):
            return _exception_text(ctx, value, name)
        if owner in _TELL_THEIR_CLASS:
            value.unsupported(f"{name}()", TEXT)
        if owner is not object and value.contents is not None:
            return text_of(ctx, value.contents, name)
        if owner is types.SimpleNamespace:
            fields = {entry.key: entry.value for entry in value.namespace.read_all(ctx).values()}
            namespace = types.SimpleNamespace(**{str(key.constant()): shown(ctx, item) for key, item in fields.items()})
            text = repr(namespace).removeprefix("namespace") if value.kind is types.SimpleNamespace else ""
            return Constant(f"namespace{text}") if text else value.unsupported(f"{name}()", TEXT)
    value.unsupported(f"{method_name}()", TEXT)


def _exception_text(ctx: CaptureContext, value: ExceptionValue, method_name: str) -> Value:
    """Evaluate str() or repr() of an exception by the rule of its class written in C."""
    if isinstance(value, GroupValue) and method_name == "__str__":
        count = len(value.members)
        plural = "" if count == 1 else "s"
        return Constant(f"{formatted(ctx, value.args[0], '').constant()} ({count} sub-exception{plural})")
    if isinstance(value, GroupValue):
        return Constant(f"{told_name(value.kind)}({', '.join(repr(shown(ctx, arg)) for arg in value.args)})")
    if value.real is not MISSING and issubclass(value.kind, OSError | SyntaxError | UnicodeError):
        value.unsupported("the text of an exception from outside, whose fields may have been set", TEXT)
    number = value.native_fields(ctx).get("errno") if value.real is MISSING else None
    if isinstance(number, Constant) and value.constructor_arguments[0] != value.args:
        return fold(
            ctx,
            str if method_name == "__str__" else repr,
            native_of(value.kind)(*(shown(ctx, arg) for arg in value.constructor_arguments[0])),
        )
    args = [shown(ctx, arg) for arg in value.args]
    native = native_of(value.kind)
    if method_name == "__str__":
        return fold(ctx, lambda: str(native(*args)))
    return fold(ctx, lambda: f"{told_name(value.kind)}{repr(native(*args)).removeprefix(native.__name__)}")


def formatted(ctx: CaptureContext, value: Value, specification: str) -> Value:
    """Evaluate `format(value, specification)`."""
    if isinstance(value, ObjectValue):
        method = value.method(ctx, "__format__")
        if method is not None:
            answer = ctx.realize(ctx.call(method, [Constant(specification)], {}))
            if not issubclass(answer.python_type(), str):
                ctx.throw(TypeError, f"__format__ must return a str, not {told_name(answer.python_type())}")
            return answer
        if not specification:
            return text_of(ctx, value, "__str__")
        if value.contents is None or class_lookup(value.kind, "__format__")[0] is object:
            _refuse_format(ctx, value.kind)
        held = shown(ctx, value.contents)
        if isinstance(held, Shown):
            raise Break(TEXT, f"formatting of {value.describe()}")
        named = type(name_in_errors(value.kind), (type(held),), {})
        return fold(ctx, format, made_of(named, held), specification)
    if specification and class_lookup(value.python_type(), "__format__")[0] is object:
        _refuse_format(ctx, value.python_type())
    if not value.has_text:
        raise Break(TEXT, f"formatting of {value.describe()}")
    real = shown(ctx, value)
    if isinstance(real, Shown):
        raise Break(TEXT, f"formatting of {value.describe()}")
    return fold(ctx, format, real, specification)


@string_method("format", "format_map", "__mod__")
def _fill_in(ctx: CaptureContext, text: Constant, name: str, args: Arguments, kwargs: Keywords) -> Value:
    by_name = name == "format_map" or (name == "__mod__" and "%(" in str(text.value))
    reals = [_operand(ctx, arg) if by_name else shown(ctx, arg) for arg in args]
    named = {key: shown(ctx, value) for key, value in kwargs.items()}
    return fold(ctx, getattr(text.value, name), *reals, **named)


def _operand(ctx: CaptureContext, value: Value) -> object:
    """Return what stands for the right side of `%`, where it fills in by name: what a mapping holds."""
    value = ctx.realize(value)
    answers = any(isinstance(class_lookup(value.python_type(), name)[1], types.FunctionType) for name in _ITEMS)
    return shown(ctx, value.contents) if isinstance(value.contents, DictValue) and not answers else shown(ctx, value)


@string_method("join")
def _join(ctx: CaptureContext, text: Constant, name: str, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) != 1:
        text.refuse(ctx, "method 'join'", lambda value, *rest: value.join(*rest), *args, reason=BUILTIN_METHOD)
    try:
        iterator = ctx.realize(args[0]).iterate(ctx)
    except Raised as raised:
        if not issubclass(raised.value.python_type(), TypeError):
            raise
        ctx.throw(TypeError, "can only join an iterable")
    parts = [shown(ctx, part) for part in iterator.gathered(ctx)]
    joined: Any = text.value
    return fold(ctx, joined.join, parts)


__all__ = ["Shown", "formatted", "shown", "text_of"]


def _refuse_format(ctx: CaptureContext, kind: type) -> NoReturn:
    ctx.throw(TypeError, f"unsupported format string passed to {name_in_errors(kind)}.__format__")
