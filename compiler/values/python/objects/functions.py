"""Python functions, closures and bound methods."""

import inspect
import sys
import types
from collections.abc import Hashable
from types import CodeType
from typing import NoReturn

from ...constant import Constant, MethodOf
from ...guard import Answer, GuardKind
from ...identities import is_same
from ...known_object import AtomicValue
from ...operator_table import Comparison
from ...reasons import ATTRIBUTE, CANNOT_REBUILD, SUSPENDABLE, UNSUPPORTED_OPERATION, Break
from ...source import Attribute, Injected, Item, Source
from ...type_attributes import require_attribute
from ...value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from ..containers.mappings import DictValue
from ..containers.namespaces import GlobalsValue
from ..containers.tuples import TupleValue

Function = types.FunctionType


class CellValue(Value):
    """A closure cell; content None: empty."""

    def __init__(self, content: Value | None = None, source: Source | None = None) -> None:
        self.content = content
        self.source = source
        self.read_later = False  # by code that runs after the function has returned

    def python_type(self) -> type:
        """Return the cell type."""
        return types.CellType

    def load(self, ctx: CaptureContext, name: str) -> Value:
        """Return the content."""
        if self.content is None:
            words = f"cannot access free variable '{name}' where it is not associated with a value"
            ctx.throw(NameError, words, name=name)
        self.content = ctx.realize(self.content)
        return self.content

    def store(self, ctx: CaptureContext, value: Value | None) -> None:
        """Replace the content; None empties the cell."""
        if self.read_later:
            self.unsupported("assigning to a variable that a hook has read", CANNOT_REBUILD)
        if self.content is not None and self.content is not value:
            ctx.effects.let_go(self, [self.content])
        self.content = value
        ctx.effects.mutated(self)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give `cell_contents`."""
        if name == "cell_contents":
            return self.load(ctx, name)
        self.unsupported(f"attribute {name!r}", ATTRIBUTE)

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new cell; made before its content, which may refer back to it."""
        name = out.fresh()
        out.line(f"{name} = {out.inject(types.CellType)}()")
        out.bind(self, name)
        if self.content is not None:
            out.fill(f"{name}.cell_contents", self.content)
        return name

    def replay(self, out: Rebuilder) -> list[str]:
        """Write the content into the original cell."""
        name = out.value(self)
        if self.content is None:
            return [f"del {name}.cell_contents"]
        return [f"{name}.cell_contents = {out.value(self.content)}"]


_SPECIAL = frozenset({"__doc__", "__module__", "__annotations__", "__type_params__"})  # not in a function's `__dict__`


_CHECKED = ("__code__", "__kwdefaults__", "__globals__", "__closure__", "__dict__", "__builtins__", "__class__")


def _not_called(*args: object, **kwargs: object) -> NoReturn:
    """Stand for a function where Python is asked what it refuses: what calls it does more than look at its type."""
    raise Break(UNSUPPORTED_OPERATION, "a call of a function that is passed on")


class FunctionValue(AtomicValue):
    """A Python function: one from outside (real is set) or one made while capturing."""

    always_true = True
    has_text = False  # it would show an address

    def __init__(
        self,
        code: CodeType,
        namespace: dict[str, object],
        cells: list[CellValue],
        defaults: list[Value],
        keyword_defaults: dict[str, Value],
        *,
        name: str,
        qualified_name: str,
        source: Source | None = None,
        real: Function | None = None,
    ) -> None:
        self.code = code
        self.namespace = namespace
        self.cells = cells
        self.defaults = defaults
        self.keyword_defaults = keyword_defaults
        self.name = name
        self.qualified_name = qualified_name
        self.source = source
        self.real = real
        self.attributes: dict[str, Value] = {}
        self.written: list[str] = []
        self.dictionary: DictValue | None = None  # `__dict__` of a function made here, once it was asked for

    def guard_identity(self, ctx: CaptureContext) -> None:
        """Demand this function: until now only its code was guarded."""
        if self.real is not None and self.source is not None and not isinstance(self.source, Injected):
            ctx.guards.add(self.source, GuardKind.IDENTITY, self.identity())

    def python_type(self) -> type:
        """Return the function type."""
        return types.FunctionType

    def stand_in(self) -> object:
        """Return a function."""
        return _not_called

    def describe(self) -> str:
        """Return the function's name."""
        return f"function {self.qualified_name}"

    def identity(self) -> object:
        """Return the real function if there is one."""
        return self.real if self.real is not None else self

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Functions hash by identity."""
        return self.real if self.real is not None else self

    def has_attributes(self) -> bool:
        """Return whether it has attributes of its own that nothing but this value, or its original, knows."""
        own = vars(self.real) if self.real is not None else self.dictionary is not None
        return bool(self.attributes or self.written or own)

    def told_name(self, ctx: CaptureContext) -> str:
        """Return the qualified name for a text, which holds until somebody renames the function."""
        if self.source is not None and self.real is not None:
            ctx.guards.add(Attribute(self.source, "__qualname__"), GuardKind.EQUALS, self.qualified_name)
        return self.qualified_name

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the body inside the capture."""
        return ctx.calls.inline(self, args, kwargs)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give names, defaults and attributes set on the function."""
        if name in self.attributes:
            return ctx.realize(self.attributes[name])
        if self.dictionary is not None and (attribute := self.dictionary.find(ctx, Constant(name))) is not None:
            return attribute
        if name in ("__get__", "__call__"):
            return MethodOf(self, name)
        simple: dict[str, object] = {
            "__name__": self.name,
            "__qualname__": self.qualified_name,
            "__code__": self.code,
            "__module__": self.namespace.get("__name__"),
            "__doc__": next((text for text in self.code.co_consts[:1] if isinstance(text, str)), None),
        }
        if self.real is None:
            if name in simple:
                return ctx.known(simple[name])
            attribute = self._own_attribute(ctx, name)
            if attribute is not None:
                return attribute
            require_attribute(ctx, self, name)
            if name == "__class__":
                return ctx.known(types.FunctionType)
            self.unsupported(f"attribute {name!r}", ATTRIBUTE)
        if name == "__dict__" and self.written:
            self.unsupported("__dict__ of a function to which the call has given attributes", ATTRIBUTE)
        if not hasattr(self.real, name):
            if self.source is not None:
                ctx.guards.add(self.source, GuardKind.LACKS_ATTRIBUTE, name)
            ctx.throw(AttributeError, f"'function' object has no attribute '{name}'")
        if name == "__code__":
            return ctx.known(self.code)
        if name == "__globals__":
            return GlobalsValue(self.real.__globals__)
        assert self.source is not None
        return ctx.wrap(getattr(self.real, name), Attribute(self.source, name))

    def _own_attribute(self, ctx: CaptureContext, name: str) -> Value | None:
        """Give what every function has, of one made while capturing."""
        if name == "__defaults__":
            return TupleValue(list(self.defaults)) if self.defaults else Constant(None)
        if name == "__kwdefaults__":
            pairs: list[tuple[Value, Value]] = [(Constant(key), value) for key, value in self.keyword_defaults.items()]
            return DictValue.of(ctx, pairs) if pairs else Constant(None)
        if name == "__closure__":
            return TupleValue(list(self.cells)) if self.cells else Constant(None)
        if name == "__annotations__":
            return self.attributes.setdefault(name, DictValue())
        if name == "__type_params__" and sys.version_info >= (3, 12):
            return TupleValue([])
        if name == "__dict__":
            if self.dictionary is None:
                own = {key: value for key, value in self.attributes.items() if key not in _SPECIAL}
                self.dictionary = DictValue.of(ctx, [(Constant(key), value) for key, value in own.items()])
                self.attributes = {key: value for key, value in self.attributes.items() if key in _SPECIAL}
            return self.dictionary
        return None

    def del_attr(self, ctx: CaptureContext, name: str) -> None:
        """Delete an attribute of a function made while capturing."""
        if self.real is not None or name in _SPECIAL:
            self.unsupported(f"deleting attribute {name!r}", ATTRIBUTE)
        owner = self._own_attribute(ctx, "__dict__")
        assert owner is not None
        if not owner.contains(ctx, Constant(name)):
            ctx.throw(AttributeError, f"'function' object has no attribute '{name}'")
        owner.del_item(ctx, Constant(name))

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Set an attribute of a function made while capturing."""
        if self.dictionary is not None and name not in _SPECIAL and not name.startswith("__"):
            self.dictionary.set_item(ctx, Constant(name), value)
            return
        fixed = ("__defaults__", "__name__", "__qualname__") if self.real is not None else ()
        checked = {"__name__": str, "__qualname__": str, "__defaults__": tuple | None}.get(name, object)
        if name in (*_CHECKED, *fixed) or not issubclass(ctx.realize(value).python_type(), checked):
            self.unsupported(f"setting attribute {name!r}", ATTRIBUTE)
        if name == "__defaults__":
            self.defaults = [] if ctx.realize(value).identity() is None else list(ctx.unpack(value))
        elif name in ("__name__", "__qualname__") and ctx.realize(value).is_constant():
            text = str(ctx.realize(value).constant())
            self.name, self.qualified_name = (text, self.qualified_name) if name == "__name__" else (self.name, text)
        else:
            self.attributes[name] = value
            self.written.append(name)
            ctx.effects.mutated(self)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `__get__` and `__call__`."""
        if name == "__get__":
            owner = ctx.realize(args[0])
            is_none = isinstance(owner, Constant) and owner.value is None
            return self if is_none else BoundMethod(self, owner)
        if name == "__call__":
            return self.call(ctx, args, kwargs)
        return super().call_method(ctx, name, args, kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new function over the same code."""
        closure = "".join(f"{out.value(cell)}, " for cell in self.cells)
        defaults = "".join(f"{out.value(value)}, " for value in self.defaults)
        name = out.fresh()
        out.line(
            f"{name} = {out.inject(types.FunctionType)}({out.inject(self.code)}, {out.inject(self.namespace)},"
            f" {self.name!r}, {f'({defaults})' if defaults else None}, ({closure}))"
        )
        if self.keyword_defaults:
            pairs = ", ".join(f"{key!r}: {out.value(value)}" for key, value in self.keyword_defaults.items())
            out.line(f"{name}.__kwdefaults__ = {{{pairs}}}")
        if self.qualified_name != self.code.co_qualname:
            out.line(f"{name}.__qualname__ = {out.value(Constant(self.qualified_name))}")
        for key, value in self.attributes.items():
            out.line(f"{out.inject(setattr)}({name}, {key!r}, {out.value(value)})")
        if self.dictionary is not None:
            for entry in self.dictionary.entries.values():
                out.line(f"{name}.__dict__[{out.value(entry.key)}] = {out.value(entry.value)}")
        return name

    def replay(self, out: Rebuilder) -> list[str]:
        """Set the attributes on the original function."""
        name, setter = out.value(self), out.inject(setattr)
        return [f"{setter}({name}, {key!r}, {out.value(self.attributes[key])})" for key in dict.fromkeys(self.written)]


def wrap_function(ctx: CaptureContext, function: Function, source: Source) -> FunctionValue:
    """Return the value of a real function; its code is guarded by the caller."""
    cells: list[CellValue] = []
    for position, cell in enumerate(function.__closure__ or ()):
        place = Injected(cell) if isinstance(source, Injected) else Item(Attribute(source, "__closure__"), position)
        cell_value = ctx.wrap(cell, place)
        assert isinstance(cell_value, CellValue)
        cells.append(cell_value)
    defaults: list[Value] = []
    for position, default in enumerate(function.__defaults__ or ()):
        defaults.append(ctx.lazy(default, Item(Attribute(source, "__defaults__"), position)))
    keyword_defaults = {
        name: ctx.lazy(default, Item(Attribute(source, "__kwdefaults__"), name))
        for name, default in (function.__kwdefaults__ or {}).items()
    }
    return FunctionValue(
        function.__code__,
        function.__globals__,
        cells,
        defaults,
        keyword_defaults,
        name=function.__name__,
        qualified_name=function.__qualname__,
        source=source,
        real=function,
    )


def bind_arguments(ctx: CaptureContext, function: FunctionValue, args: Arguments, kwargs: Keywords) -> dict[str, Value]:
    """Return the locals that a call starts with; raises the program's TypeError as Python does."""
    code = function.code
    names = code.co_varnames
    positional, keyword_only = code.co_argcount, code.co_kwonlyargcount
    bound: dict[str, Value] = dict(zip(names[:positional], args, strict=False))
    keywords = _bind_keywords(ctx, function, bound, kwargs)
    first_default = positional - len(function.defaults)
    for position in range(first_default, positional):
        bound.setdefault(names[position], function.defaults[position - first_default])
    for parameter in names[positional : positional + keyword_only]:
        if parameter not in bound and parameter in function.keyword_defaults:
            bound[parameter] = function.keyword_defaults[parameter]
    slot = slot_end = positional + keyword_only
    if code.co_flags & inspect.CO_VARARGS:
        bound[names[slot]] = TupleValue(list(args[positional:]))
        slot += 1
    elif len(args) > positional:
        by_keyword = sum(parameter in kwargs for parameter in names[positional:slot_end])
        ctx.throw(
            TypeError, _too_many(function.told_name(ctx), positional, len(function.defaults), len(args), by_keyword)
        )
    if code.co_flags & inspect.CO_VARKEYWORDS:
        bound[names[slot]] = DictValue.of(ctx, [(Constant(key), value) for key, value in keywords.items()])
    for group, kind in ((names[:positional], "positional"), (names[positional:slot_end], "keyword-only")):
        missing = [repr(parameter) for parameter in group if parameter not in bound]
        if missing:
            _guard_defaults(ctx, function)
            ctx.throw(TypeError, _missing(function.told_name(ctx), kind, missing))
    return bound


def _bind_keywords(
    ctx: CaptureContext, function: FunctionValue, bound: dict[str, Value], kwargs: Keywords
) -> dict[str, Value]:
    """Bind the arguments that are given by name, in the order they stand in; return those for `**`."""
    code, rest = function.code, dict[str, Value]()
    named = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    only_positional = [name for name in code.co_varnames[: code.co_posonlyargcount] if name in kwargs]
    for name, value in kwargs.items():
        if name in named and name in bound:
            ctx.throw(TypeError, f"{function.told_name(ctx)}() got multiple values for argument '{name}'")
        elif name in named:
            bound[name] = value
        elif code.co_flags & inspect.CO_VARKEYWORDS:
            rest[name] = value
        elif only_positional:
            words = "got some positional-only arguments passed as keyword arguments"
            ctx.throw(TypeError, f"{function.told_name(ctx)}() {words}: '{', '.join(only_positional)}'")
        else:
            ctx.throw(TypeError, f"{function.told_name(ctx)}() got an unexpected keyword argument '{name}'")
    return rest


def _guard_defaults(ctx: CaptureContext, function: FunctionValue) -> None:
    """Demand that a function from outside has the same defaults, where what it lacks was noticed."""
    real = function.real
    if real is not None:
        ctx.guards.add(Injected(_names_of_defaults), GuardKind.ANSWER, Answer((real,), {}, _names_of_defaults(real)))


def _names_of_defaults(function: types.FunctionType) -> str:
    """Return how many defaults a function has, and for which keyword-only parameters, as text."""
    return f"{len(function.__defaults__ or ())} {sorted(function.__kwdefaults__ or ())}"


def _too_many(name: str, positional: int, defaults: int, count: int, by_keyword: int) -> str:
    """Return Python's message for too many positional arguments."""
    takes = f"from {positional - defaults} to {positional}" if defaults else str(positional)
    plural = "" if positional == 1 and not defaults else "s"
    count_text = str(count)
    if by_keyword:
        count_text += f" positional argument{'s' if count > 1 else ''}"
        count_text += f" (and {by_keyword} keyword-only argument{'s' if by_keyword > 1 else ''})"
    verb = "was" if count == 1 and not by_keyword else "were"
    return f"{name}() takes {takes} positional argument{plural} but {count_text} {verb} given"


def _missing(name: str, kind: str, missing: list[str]) -> str:
    """Return Python's message for missing arguments."""
    listed = ", ".join(missing[:-1]) + f", and {missing[-1]}" if len(missing) > 2 else " and ".join(missing)
    return f"{name}() missing {len(missing)} required {kind} argument{'s' if len(missing) > 1 else ''}: {listed}"


class BoundMethod(Value):
    """A function bound to an object."""

    always_true = True
    equal_by_identity = True

    def __init__(self, function: Value, owner: Value, source: Source | None = None) -> None:
        self.function = function
        self.owner = owner
        self.source = source

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Bound methods are equal where function and owner are the same."""
        if not isinstance(other, BoundMethod) or not record.asks_equality:
            return None
        same = is_same(ctx, self.function, other.function) and is_same(ctx, self.owner, other.owner)
        return Constant(same == (record.symbol == "=="))

    def python_type(self) -> type:
        """Return the method type."""
        return types.MethodType

    def stand_in(self) -> object:
        """Return a method."""
        return types.MethodType(_not_called, 0)

    def describe(self) -> str:
        """Return the method's name."""
        return f"method {getattr(self.function, 'qualified_name', self.function.describe())}"

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Methods hash by function and owner."""
        return ("method", self.function.identity(), id(self.owner))

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Call the function with the owner in front."""
        return ctx.calls.hand_on(self, self.function, [self.owner, *args], kwargs)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give `__self__`, `__func__`, and the function's attributes."""
        if name == "__self__":
            return self.owner
        if name == "__func__":
            return self.function
        return self.function.get_attr(ctx, name)

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new bound method."""
        name = out.fresh()
        out.line(f"{name} = {out.inject(types.MethodType)}({out.value(self.function)}, {out.value(self.owner)})")
        return name


def require_inlinable(code: CodeType) -> None:
    """Raise Break for coroutines, which are not evaluated."""
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE):
        raise Break(SUSPENDABLE, f"{code.co_name} is a coroutine")
