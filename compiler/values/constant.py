"""Values that are wholly known while capturing: literals, and objects known by identity."""

import enum
import inspect
import operator
import sys
import types
from collections.abc import Callable, Hashable
from typing import Any

from ..base.real_objects.past_methods import is_really, own_namespace
from .guard import ABSENT, GuardKind, Member, look_up, member_found
from .known_object import KnownObject
from .operator_table import Binary, Comparison
from .reasons import ARGUMENT_NOT_KNOWN, ATTRIBUTE, BUILTIN_METHOD, COPY, UNKNOWN_CALLEE, UNSUPPORTED_OBJECT, Break
from .refused_arguments import demand_arguments, demand_method_arguments, refuse_arguments
from .source import Attribute, Injected, Item, Source
from .value import Arguments, CaptureContext, Keywords, Raised, Rebuilder, Value, defines

LITERAL_TYPES: frozenset[type] = frozenset(
    {int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range}
)
_INLINE_TYPES = frozenset({int, bool, str, type(None)})
OF_ANY_IDENTITY = frozenset({int, float, complex, str, bytes, range})  # equal ones may be several objects
_SMALL_INTEGERS = range(-5, 257)  # of which CPython has one each


StringRule = Callable[[CaptureContext, "Constant", str, Arguments, Keywords], Value]
_STRING_METHODS: dict[str, StringRule] = {}


def string_method(*names: str) -> Callable[[StringRule], StringRule]:
    """Register the rule of string methods that take more than known arguments."""

    def register(rule: StringRule) -> StringRule:
        _STRING_METHODS.update(dict.fromkeys(names, rule))
        return rule

    return register


class Constant(KnownObject):
    """A literal: number, string, None, Ellipsis, NotImplemented, range, or a slice of such.

    read_from: where one came from whose value is guarded; asked where it matters which of several equal objects it is.
    """

    read_from: Source | None = None

    def __init__(self, value: object, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    def describe(self) -> str:
        """Return the literal, shortened."""
        text = repr(self.value)
        return text if len(text) < 60 else text[:57] + "..."

    def constant(self) -> object:
        """Return the literal."""
        return self.value

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Return the literal, which hashes and compares as Python does."""
        if isinstance(self.value, slice):
            ctx.throw(TypeError, "unhashable type: 'slice'")
        if self.read_from is not None and self.value != self.value:
            raise Break(ARGUMENT_NOT_KNOWN, "NaN as a key, which is found by its identity")
        return self.value

    def binary(self, ctx: CaptureContext, record: Binary, other: Value, reflected: bool, inplace: bool) -> Value | None:
        """Fill a text with values that are not known; what is known on both sides is evaluated by Python."""
        if record.symbol != "%" or reflected or other.is_constant() or not isinstance(self.value, str | bytes):
            return None
        return self.call_method(ctx, "__mod__", [other], {})

    def repeat(self, ctx: CaptureContext, count: Value, reflected: bool, inplace: bool) -> Value | None:
        """Repeat a text by what an object says that it counts."""
        times = ctx.realize(count).as_index(ctx)
        if times is count or not times.is_constant() or not isinstance(self.value, str | bytes):
            return None
        return fold(ctx, operator.mul, self.value, times.constant())

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method, or the attribute of the literal."""
        if name == "__class__":
            return ctx.known(type(self.value))
        try:
            attribute = getattr(self.value, name)
        except AttributeError as error:
            ctx.throw(AttributeError, *error.args)
        if callable(attribute):
            return MethodOf(self, name)
        return ctx.known(attribute)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Run the method now if every argument is known."""
        rule = _STRING_METHODS.get(name) if isinstance(self.value, str) else None
        if rule is not None:
            return rule(ctx, self, name, args, kwargs)
        if name == "__iter__":
            return self.iterate(ctx)
        return fold_call(ctx, self, name, args, kwargs)

    def iterate(self, ctx: CaptureContext) -> Value:
        """Iterate over the known elements."""
        if not isinstance(self.value, str | bytes | range):
            self.refuse(ctx, "iteration", iter)
        if isinstance(self.value, range):
            return RangeIterator(self.value)
        iterator: Any = ctx.known(tuple(self.value)).iterate(ctx)
        iterator.kind = type(iter(self.value))
        iterator.made_by = iter, self
        return iterator  # type: ignore[no-any-return]  # a SequenceIterator

    def reversed(self, ctx: CaptureContext) -> Value:
        """Iterate over the known elements from the last."""
        if isinstance(self.value, range):
            return ctx.known(self.value[::-1]).iterate(ctx)
        if not isinstance(self.value, str | bytes):
            self.refuse(ctx, "reversed", reversed)
        iterator: Any = ctx.known(tuple(self.value[::-1])).iterate(ctx)
        iterator.kind = reversed
        iterator.made_by = reversed, self
        return iterator  # type: ignore[no-any-return]  # a SequenceIterator

    def length(self, ctx: CaptureContext) -> Value:
        """Return the known length."""
        return fold(ctx, len, self.value)

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Return the known element."""
        key = ctx.realize(key).as_index(ctx)
        if not key.is_constant():
            self.refuse(ctx, "subscript", operator.getitem, key)
        return fold(ctx, operator.getitem, self.value, key.constant())

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Test membership now."""
        if not item.is_constant():
            self.refuse(ctx, "membership test", operator.contains, item)
        return bool(fold(ctx, lambda: item.constant() in self.value).constant())  # type: ignore[operator]  # as Python

    def rebuild(self, out: Rebuilder) -> str:
        """Return the literal, or an injected name where text would not be exact.

        It is that very object, also among equal ones: the program may ask which of them it holds.
        """
        if self.read_from is not None and type(self.value) in OF_ANY_IDENTITY and not _is_small(self.value):
            return out.fetch(self.read_from)
        if type(self.value) in _INLINE_TYPES and len(repr(self.value)) < 200 and _is_only_one(self.value):
            return repr(self.value)
        return out.inject(self.value)


def _is_small(value: object) -> bool:
    return type(value) is int and value in _SMALL_INTEGERS


def _is_only_one(value: object) -> bool:
    """Return whether a literal is this very object: a small number, a text that compiling code interns."""
    if isinstance(value, str):
        named = value.isascii() and f"_{value}".isidentifier()
        return (named or len(value) < 2) and sys.intern(value) is value
    return type(value) is not int or _is_small(value)


class RangeIterator(Value):
    """An iterator over a known range."""

    always_true = True

    def __init__(self, numbers: range) -> None:
        self.rest = numbers

    def python_type(self) -> type:
        """Return the iterator type."""
        return type(iter(range(0)))

    def stand_in(self) -> object:
        """Return an iterator over nothing."""
        return iter(range(0))

    def iterate(self, ctx: CaptureContext) -> Value:
        """Return itself."""
        return self

    def next(self, ctx: CaptureContext) -> Value:
        """Give the next number."""
        if not self.rest:
            ctx.throw(StopIteration)
        number, self.rest = self.rest[0], self.rest[1:]
        return Constant(number)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate explicit `__next__` and `__iter__`."""
        return self.next(ctx) if name == "__next__" else self

    def rebuild(self, out: Rebuilder) -> str:
        """Make an iterator over the rest."""
        name = out.fresh()
        out.line(f"{name} = {out.inject(iter)}({out.inject(self.rest)})")
        return name


def _sets_plainly(kind: type, name: str) -> bool:
    """Return whether setting an attribute of a module of a class puts it into the namespace, and does no more."""
    setter = look_up(kind, "__setattr__")[1]
    return setter in (object.__setattr__, types.ModuleType.__setattr__) and look_up(kind, name)[1] is ABSENT


_OF_MEMBERS = frozenset({"__objclass__", "_sort_order_"})  # of enumerations: never change
_OF_MEMBERS_BY_PROPERTY = {name: vars(enum.Enum)[name] for name in ("name", "value")}


def names_of_module(module: types.ModuleType) -> dict[str, object]:
    """Return the globals of a module, past the methods of its class."""
    names = own_namespace(module)
    assert names is not None
    return names


class Known(KnownObject):
    """An object known by identity: a module, a builtin, a dtype, an enum member."""

    def __init__(self, value: object, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    def describe(self) -> str:
        """Return the object's name."""
        if is_really(self.value, types.ModuleType):
            return str(names_of_module(self.value).get("__name__"))
        module = getattr(self.value, "__module__", None)
        name = getattr(self.value, "__qualname__", None) or getattr(self.value, "__name__", None)
        return f"{module}.{name}" if module and name else str(name or type(self.value).__name__)

    def constant(self) -> object:
        """Return the object."""
        return self.value

    def deep_copy(self, ctx: CaptureContext, memo: dict[int, Value]) -> Value:
        """Return itself; modules cannot be copied."""
        if is_really(self.value, types.ModuleType):
            raise Break(COPY, "deepcopy of a module")
        return self

    def defines_operators(self) -> bool:
        """Return whether it is a member of an enumeration."""
        return is_really(self.value, enum.Enum)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Read the attribute now; attributes of user modules are guarded."""
        if is_really(self.value, types.ModuleType):
            return self._module_attr(ctx, self.value, name)
        space = getattr(self.value, "__dict__", None)
        if name == "__dict__" and type(space) is dict:
            return ctx.wrap(space, Attribute(Injected(self.value), "__dict__"))
        if is_really(self.value, enum.Enum) and name in _OF_MEMBERS_BY_PROPERTY:
            plain = look_up(type(self.value), name)[1] is _OF_MEMBERS_BY_PROPERTY[name]
            name = f"_{name}_" if plain else name
        if isinstance(space, dict) and name not in _OF_MEMBERS and look_up(type(self.value), name)[1] is ABSENT:
            place = Attribute(Injected(self.value), "__dict__")
            if name in space:
                return ctx.lazy(space[name], Item(place, name))
            ctx.guards.add(place, GuardKind.LACKS_KEY, name)
        raw = look_up(type(self.value), name)[1] if is_really(self.value, enum.Enum) else None
        if isinstance(raw, property) and isinstance(raw.fget, types.FunctionType):
            return ctx.class_attr(self, type(self.value), name)  # its code reads what the member has by then
        try:
            attribute = getattr(self.value, name)
        except AttributeError as error:
            ctx.throw(AttributeError, *error.args)
        if isinstance(attribute, types.MethodType) and is_really(self.value, enum.Enum):
            return ctx.wrap(attribute, Injected(attribute))
        if isinstance(attribute, types.BuiltinMethodType) and issubclass(type(self.value), str | int | float):
            return MethodOf(self, name)
        return ctx.known(attribute)

    def guard_member(self, ctx: CaptureContext) -> None:
        """Guard what a member of an enumeration says of itself, for what Python answers from it."""
        if is_really(self.value, enum.Enum):
            for name in ("_name_", "_value_"):
                ctx.realize(self.get_attr(ctx, name))

    def truth(self, ctx: CaptureContext) -> bool:
        """Return the truth of a flag by the bits that it has now."""
        self.guard_member(ctx)
        return super().truth(ctx)

    def _module_attr(self, ctx: CaptureContext, module: types.ModuleType, name: str) -> Value:
        names = names_of_module(module)
        if name == "__dict__" and look_up(type(module), "__getattribute__")[1] is types.ModuleType.__getattribute__:
            return ctx.wrap(names, Attribute(Injected(module), name))
        written = ctx.effects.written_global(names, name)
        if written is not None and not isinstance(look_up(type(module), "__getattribute__")[1], types.FunctionType):
            if written[0] is None:
                ctx.throw(AttributeError, f"module {module.__name__!r} has no attribute {name!r}")
            return ctx.realize(written[0])
        if not is_stable_module(module):
            by_code = self._by_own_code(ctx, module, name)
            if by_code is not None:
                return by_code
        try:
            attribute = getattr(module, name)
        except AttributeError as error:  # one of torch's or Python's may be given attributes, too
            ctx.guards.add(Attribute(Injected(module), "__dict__"), GuardKind.LACKS_KEY, name)
            ctx.throw(AttributeError, *error.args)
        if name not in names and type(attribute) in LITERAL_TYPES:  # computed: a flag of torch.backends, say
            return ctx.wrap(attribute, Attribute(Injected(module), name))
        if name not in names:
            return ctx.known(attribute)
        if is_stable_module(module) and type(attribute) not in LITERAL_TYPES:
            ctx.guards.add(Item(Injected(names), name), GuardKind.IDENTITY, attribute)  # tests replace functions
            return ctx.known(attribute)
        return ctx.lazy(attribute, Item(Attribute(Injected(module), "__dict__"), name))

    def _by_own_code(self, ctx: CaptureContext, module: types.ModuleType, name: str) -> Value | None:
        """Return what the code of a module's class, or its `__getattr__`, gives; None where neither is asked."""
        kind = type(module)
        fallback = isinstance(_class_member(ctx, kind, "__getattr__"), types.FunctionType)
        try:
            found = self._looked_up_by_code(ctx, module, name)
            there = name in names_of_module(module) or _class_member(ctx, kind, name) is not ABSENT
            if found is not None or there or not fallback:
                return found
        except Raised as raised:
            if not fallback or not _is_missing(raised):
                raise
        return ctx.call(ctx.class_attr(self, kind, "__getattr__"), [Constant(name)], {})

    def _looked_up_by_code(self, ctx: CaptureContext, module: types.ModuleType, name: str) -> Value | None:
        """Return what code finds by the look-up of modules, before the `__getattr__` of the class is asked."""
        kind, names = type(module), names_of_module(module)
        own = _class_member(ctx, kind, name)
        if isinstance(_class_member(ctx, kind, "__getattribute__"), types.FunctionType):
            return ctx.call(ctx.class_attr(self, kind, "__getattribute__"), [Constant(name)], {})
        if isinstance(own, property):
            try:
                return ctx.realize(ctx.class_attr(self, kind, name))
            except Raised as raised:
                if not _is_missing(raised):
                    raise
        elif isinstance(own, types.FunctionType) and name not in names:
            return ctx.class_attr(self, kind, name)
        elif name in names or own is not ABSENT:
            return None
        else:
            ctx.guards.add(Injected(names), GuardKind.LACKS_KEY, name)
        if isinstance(names.get("__getattr__"), types.FunctionType):  # as a module may have one itself (PEP 562)
            return ctx.call(ctx.realize(self._module_attr(ctx, module, "__getattr__")), [Constant(name)], {})
        if "__getattr__" not in names:
            ctx.guards.add(Injected(names), GuardKind.LACKS_KEY, "__getattr__")
        if isinstance(own, property):
            ctx.throw(AttributeError, f"module {module.__name__!r} has no attribute {name!r}")
        return None

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Assign a global of a Python module."""
        if not is_really(self.value, types.ModuleType) or not _sets_plainly(type(self.value), name):
            self.unsupported(f"setting attribute {name!r}", ATTRIBUTE)
        ctx.effects.set_global(names_of_module(self.value), name, value)

    def del_attr(self, ctx: CaptureContext, name: str) -> None:
        """Break: the default would try it on the object itself."""
        self.unsupported(f"deleting attribute {name!r}", ATTRIBUTE)

    def set_item(self, ctx: CaptureContext, key: Value, value: Value) -> None:
        """Refuse what the type refuses; the default would try it on the object itself."""
        if defines(type(self.value), "__setitem__"):
            self.unsupported("item assignment", UNSUPPORTED_OBJECT)
        super().set_item(ctx, key, value)

    def del_item(self, ctx: CaptureContext, key: Value) -> None:
        """Refuse what the type refuses; the default would try it on the object itself."""
        if defines(type(self.value), "__delitem__"):
            self.unsupported("item deletion", UNSUPPORTED_OBJECT)
        super().del_item(ctx, key)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Run a method of an enum member that is also a string or a number; look others up."""
        if issubclass(type(self.value), str | int | float) and is_really(self.value, enum.Enum):
            return fold_call(ctx, self, name, args, kwargs)
        if name in _OF_ATTRIBUTES and is_really(self.value, types.ModuleType):  # by C, past the class's own
            self.unsupported(f"method {name!r}", BUILTIN_METHOD)
        return super().call_method(ctx, name, args, kwargs)

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Call by the rule of the object; without one, break."""
        rule = ctx.calls.call_rule(self.value)
        if rule is None:
            self.unsupported("call", UNKNOWN_CALLEE)
        demand_arguments(ctx, self.value, args, kwargs)
        try:
            return rule(ctx, args, kwargs)
        except (IndexError, KeyError, ValueError):
            refuse_arguments(ctx, self.value, args, kwargs)  # rules do not count their arguments
            raise

    def iterate(self, ctx: CaptureContext) -> Value:
        """Iterate over a flag, or over an enum member that is text; other objects are not iterable here."""
        if isinstance(self.value, enum.Flag | str):
            self.guard_member(ctx)
            return ctx.known(tuple(self.value)).iterate(ctx)
        if is_really(self.value, enum.Enum):
            self.refuse(ctx, "iteration", iter)
        self.unsupported("iteration", UNSUPPORTED_OBJECT)

    def length(self, ctx: CaptureContext) -> Value:
        """Return the number of flags, or of characters."""
        return fold(ctx, len, self.value) if is_really(self.value, enum.Enum) else super().length(ctx)

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Test flags and text."""
        if is_really(self.value, enum.Enum) and not item.is_constant():
            self.refuse(ctx, "membership test", operator.contains, item)
        if is_really(self.value, enum.Enum):
            for member in (self, item):
                if isinstance(member, Known):
                    member.guard_member(ctx)
            return bool(fold(ctx, lambda: item.constant() in self.value).constant())  # type: ignore[operator]  # as Python
        return super().contains(ctx, item)

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Subscript typing constructs and enum members that are text."""
        if type(self.value).__module__ == "typing":
            known = self._type_argument(ctx, key)  # of typing's own, which would refuse what stands in for it
            return fold(ctx, operator.getitem, self.value, known)
        if key.is_constant() and is_really(self.value, enum.Enum):
            return fold(ctx, operator.getitem, self.value, key.constant())
        return super().get_item(ctx, key)

    def _type_argument(self, ctx: CaptureContext, key: Value) -> object:
        """Return what a typing construct is subscripted by: constants, other constructs, tuples and lists of these."""
        key = ctx.realize(key)
        if key.is_constant():
            return key.constant()
        if key.python_type() in (tuple, list):
            return key.python_type()(self._type_argument(ctx, part) for part in ctx.unpack(key))
        real = key.identity()
        if type(real).__module__ == "typing":
            if key.source is not None:
                ctx.guards.add(key.source, GuardKind.IDENTITY, real)
            return real
        self.unsupported("subscript", UNSUPPORTED_OBJECT)

    def rebuild(self, out: Rebuilder) -> str:
        """Return an injected name."""
        return out.inject(self.value)


_OF_ATTRIBUTES = ("__getattribute__", "__setattr__", "__delattr__")


class MadeObject(Known):
    """An object that a pure function made while capturing and makes anew whenever it is called: at run time, too.

    place: its position in what the function makes, None for all of it.
    """

    def __init__(self, value: object, make: Callable[[], object], place: int | None = None) -> None:
        super().__init__(value)
        self.make = make
        self.place = place

    def rebuild(self, out: Rebuilder) -> str:
        """Make it again, so that each call has an object of its own."""
        name = out.fresh()
        out.line(f"{name} = {out.inject(self.make)}(){'' if self.place is None else f'[{self.place}]'}")
        return name


_BOUND_TO_NO_INSTANCE = (staticmethod, classmethod, types.ClassMethodDescriptorType, types.BuiltinFunctionType)


class MethodOf(Value):
    """A method of a builtin type, bound to a value under evaluation: `owner.name`."""

    always_true = True
    equal_by_identity = True

    def __init__(self, owner: Value, name: str, source: Source | None = None) -> None:
        self.owner = owner
        self.name = name
        self.source = source
        self.bound = True  # not where one instruction loads a method to call it: Python binds none there

    def python_type(self) -> type:
        """Return the type of such a bound method: slots of C types are wrapped, some of torch's are Python's."""
        raw = inspect.getattr_static(self.owner.python_type(), self.name, None)
        if isinstance(raw, types.WrapperDescriptorType):
            return types.MethodWrapperType
        return types.MethodType if isinstance(raw, types.FunctionType) else types.BuiltinMethodType

    def stand_in(self) -> object:
        """Return a bound method of the type."""
        kind = self.python_type()
        if kind is types.MethodType:
            return types.MethodType(inspect.getattr_static(self.owner.python_type(), self.name), object())
        return [].__len__ if kind is types.MethodWrapperType else [].append

    def describe(self) -> str:
        """Return `type.name`."""
        return f"{self.owner.python_type().__name__}.{self.name}"

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Compare with another method: equal ones are the same method of the same object."""
        if not record.asks_equality or not isinstance(other, MethodOf):
            return None
        literals = isinstance(self.owner, Constant) and isinstance(other.owner, Constant)
        if self.owner is not other.owner and not literals:
            return None
        same = self.name == other.name and self.owner.identity() is other.owner.identity()
        return Constant(same == (record.symbol == "=="))

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give the names, the documentation and `__self__`."""
        if name == "__name__":  # not always what it was looked up as: torch has several names for one function
            return Constant(getattr(look_up(self.owner.python_type(), self.name)[1], "__name__", self.name))
        if name == "__self__":
            kind = self.owner.python_type()
            of_class = isinstance(look_up(kind, self.name)[1], _BOUND_TO_NO_INSTANCE)
            return fold(ctx, getattr, getattr(kind, self.name), name) if of_class else self.owner
        if name in ("__qualname__", "__module__", "__doc__", "__text_signature__"):
            return fold(ctx, getattr, getattr(self.owner.stand_in(), self.name), name)
        return super().get_attr(ctx, name)  # an AttributeError where no such method has it

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Call the method of the owner."""
        method = look_up(self.owner.python_type(), self.name)[1]
        demand_method_arguments(ctx, self.owner, method, args, kwargs, bound=self.bound)
        return self.owner.call_method(ctx, self.name, args, kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Return `owner.name`."""
        name = out.fresh()
        out.line(f"{name} = ({out.value(self.owner)}).{self.name}")
        return name


def _is_missing(raised: Raised) -> bool:
    """Return whether what was raised says that there is no such attribute."""
    return issubclass(raised.value.python_type(), AttributeError)


def _class_member(ctx: CaptureContext, kind: type, name: str) -> object:
    """Return what the class of a module has under a name, ABSENT if nothing; guarded, as Python's own cannot change."""
    found = look_up(kind, name)[1]
    if kind is not types.ModuleType:
        ctx.guards.add(Injected(kind), GuardKind.MEMBER, Member(name, None, member_found(found)))
    return found


def is_stable_module(module: types.ModuleType) -> bool:
    """Return whether a module, torch's or Python's, changes nothing that its attributes hold."""
    name = str(names_of_module(module).get("__name__"))
    if name == "torch" or name.startswith("torch."):
        return True
    return name in (
        "math",
        "operator",
        "builtins",
        "functools",
        "itertools",
        "collections",
        "typing",
        "types",
        "enum",
        "contextlib",
        "dataclasses",
        "inspect",
        "abc",
        "copy",
        "warnings",
        "_operator",
    )


def fold(ctx: CaptureContext, function: object, *args: object, **kwargs: object) -> Value:
    """Run a pure function on known objects now; its exception is raised in the evaluated program."""

    def make() -> object:
        return function(*args, **kwargs)  # type: ignore[operator]  # callers pass callables

    try:
        result = make()
    except Exception as error:
        if type(error).__module__ != "builtins":  # one of a library may hold more than its arguments
            raise Break(UNKNOWN_CALLEE, f"an operation that raises {type(error).__qualname__}") from None
        ctx.throw(type(error), *error.args)
    if hasattr(type(result), "__next__") and make() is not result:
        raise Break(UNKNOWN_CALLEE, f"a call that makes a {type(result).__qualname__}, which each call has to make")
    value = ctx.known(result)
    return MadeObject(result, make) if type(value) is Known and make() is not result else value


def fold_call(ctx: CaptureContext, owner: Value, name: str, args: Arguments, kwargs: Keywords) -> Value:
    """Run a method of a known object on known arguments."""
    real_args = [ctx.realize(arg) for arg in args]
    real_kwargs = {key: ctx.realize(value) for key, value in kwargs.items()}
    if not all(arg.is_constant() for arg in (*real_args, *real_kwargs.values())):
        owner.unsupported(f"method {name!r} with arguments that are not known", ARGUMENT_NOT_KNOWN)
    method = getattr(owner.constant(), name, None)
    if method is None:
        ctx.throw(AttributeError, f"'{owner.python_type().__name__}' object has no attribute '{name}'")
    return fold(
        ctx, method, *(arg.constant() for arg in real_args), **{k: v.constant() for k, v in real_kwargs.items()}
    )
