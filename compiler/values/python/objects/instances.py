"""Instances of user code: special methods, copies, new ones; and objects that can only be passed on."""

import collections
import functools
import operator
import sys
import types
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic

import torch

from ....base.real_objects.past_methods import own_namespace
from ...constant import Constant, MethodOf, fold
from ...identities import HashToken
from ...operator_table import COMPARISONS, Comparison
from ...reasons import BUILTIN_METHOD, COPY, UNKNOWN_CALLEE, UNSUPPORTED_OBJECT, Break
from ...refused_arguments import demand_method_arguments
from ...scalar import SizeValue
from ...source import Source
from ...value import Arguments, CaptureContext, Keywords, Raised, Rebuilder, Value, defines, unless_refused
from ..containers.iterators import IteratorValue
from ..containers.lists import ListValue
from ..containers.mapping_views import Entry
from ..containers.mappings import DictValue
from ..containers.sets import SetValue
from ..deep_copies import deep_copied
from .attributes import NativeMethod, class_lookup, is_native, name_in_errors, told_name
from .instance_attributes import InstanceAttributes, reads_plainly

OF_OWN_CLASS = (collections.deque, collections.OrderedDict, collections.defaultdict)  # what they make has their class
_COPY_HOOKS = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
_FILLING = ("append", "extend", "__setitem__", "__new__", "__setattr__")  # what copying a subclass instance calls
_LENGTHS = ("__len__", "__length_hint__")
_WORDS = (*_LENGTHS, "__hash__")  # a hash that fits is taken as it is: that of a number of its size may be another
_ANSWERS: dict[str, type] = dict.fromkeys((*_LENGTHS, "__hash__", "__index__"), int) | {"__bool__": bool}
_CONTAINERS = (collections.OrderedDict, collections.defaultdict, dict, list, collections.deque, set, frozenset)
INSTANCES: dict[type, Callable[[type], "ObjectValue"]] = {}  # base class -> maker of a fresh instance's value
SEQUENCE_ITERATOR = type(iter(type("Sequence", (), {"__getitem__": lambda self, position: None})()))


def _is_no_less(ctx: CaptureContext, number: Value) -> bool:
    """Return whether a number that varies is no less than 0, as lengths are."""
    answer = number.compare(ctx, COMPARISONS[">="], Constant(0), False)
    return answer is not None and answer.truth(ctx)


class ObjectValue(InstanceAttributes):
    """An instance of a class written in Python: its special methods, and what it holds as a container.

    contents: what an instance of a dict, list or set subclass holds, or the number or text that one of those is.
    """

    copies_plainly = True  # unless classes in C have a state of their own

    def hold(self, contents: Value | None) -> None:
        """Take what this instance of a subclass of a builtin type holds."""
        self.contents = contents
        if contents is not None and not isinstance(contents, Constant):
            contents.holder = self

    def defines_operators(self) -> bool:
        """Return True: its class may have them."""
        return True

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Compare the fields of two plain namespaces; methods of classes have been asked before."""
        if not (record.asks_equality and isinstance(other, ObjectValue)):
            return None
        if not (_is_plain_space(self.kind) and _is_plain_space(other.kind)):
            return None
        return self.namespace.compare(ctx, record, other.namespace, reflected)

    @property
    def equal_by_identity(self) -> bool:
        """Return whether the class has no rule of its own for equality that is written in C."""
        owner, raw = class_lookup(self.kind, "__eq__")
        return owner in (object, BaseException, types.SimpleNamespace) or isinstance(raw, types.FunctionType)

    def shallow_copy(self, ctx: CaptureContext) -> Value:
        """Return what `__copy__` gives, or a new instance with the same state."""
        hook = self.method(ctx, "__copy__")
        if hook is not None:
            return ctx.call(hook, [], {})
        slots = self._filled_slots(ctx)
        self._require_plain()
        copy = new_object(self.kind)
        copy.slots = dict(slots)
        if self.contents is not None and copy.contents is not None:
            copy.contents.call_method(ctx, "__init__", [self.contents], {})
        copy.namespace.entries = {
            token: Entry(entry.key, entry.value) for token, entry in self.namespace.read_all(ctx).items()
        }
        return copy

    def deep_copy(self, ctx: CaptureContext, memo: dict[int, Value]) -> Value:
        """Return what `__deepcopy__` gives, or a new instance with a copy of the state."""
        hook = self.method(ctx, "__deepcopy__")
        if hook is not None:
            memo[id(self)] = ctx.realize(ctx.call(hook, [memo[0]], {}))
            return memo[id(self)]
        slots = self._filled_slots(ctx)
        self._require_plain()
        instance = new_object(self.kind)
        memo[id(self)] = instance
        instance.slots = {name: deep_copied(ctx, item, memo) for name, item in slots.items()}
        if self.contents is not None and instance.contents is not None:
            inside = deep_copied(ctx, self.contents, memo)
            instance.contents.call_method(ctx, "__init__", [inside], {})
        for token, entry in self.namespace.read_all(ctx).items():
            instance.namespace.entries[token] = Entry(entry.key, deep_copied(ctx, entry.value, memo))
        return instance

    def _require_plain(self) -> None:
        """Raise Break unless copying makes a new instance with the same state, and calls nothing of the class's own."""
        plain = (object, None, types.SimpleNamespace)
        own = any(class_lookup(self.kind, name)[0] not in plain for name in _COPY_HOOKS)
        copyable_contents = self.contents is None or type(self.contents) in (ListValue, DictValue)
        written = (types.FunctionType, staticmethod)
        python = any(isinstance(class_lookup(self.kind, name)[1], written) for name in _FILLING)
        filled = python and (self.contents is not None or bool(self.slots))
        if own or filled or not copyable_contents or not self.copies_plainly:
            raise Break(COPY, f"copy of {self.describe()}")

    def _filled_slots(self, ctx: CaptureContext) -> dict[str, Value]:
        slots: dict[str, Value] = {}
        for kind in self.kind.__mro__:
            for name, raw in vars(kind).items():
                if isinstance(raw, types.MemberDescriptorType) and not is_native(kind):
                    content = self.generic_attr(ctx, name)
                    if content is not None:
                        slots[name] = content
        return slots

    def reversed(self, ctx: CaptureContext) -> Value:
        """Call `__reversed__`, or give the elements by position from the last."""
        method = self.method(ctx, "__reversed__")
        if method is not None:
            return ctx.call(method, [], {})
        if class_lookup(self.kind, "__reversed__")[1] is None:
            self.refuse(ctx, "reversed", reversed)
        if self.contents is not None:
            kind = self.contents.python_type()
            if not defines(kind, "__reversed__") and not defines(kind, "__getitem__"):
                self.refuse(ctx, "reversed", reversed)
            if not defines(kind, "__reversed__") and class_lookup(self.kind, "__len__")[1] is None:
                self.length(ctx)  # which refuses
            return ctx.realize(self.contents).reversed(ctx)
        if class_lookup(self.kind, "__reversed__")[0] is not None:
            return super().reversed(ctx)
        if self.method(ctx, "__getitem__") is None:
            self.refuse(ctx, "reversed", reversed)
        if self.method(ctx, "__len__") is None:
            self.length(ctx)  # which refuses
        return _hinted_by(self, IteratorValue(reversed, _from_the_end(ctx, self), ctx))

    def stand_in(self) -> object:
        """Return an instance of a class of the same name without methods, derived from the same builtin type."""
        if self.kind is types.SimpleNamespace:
            return types.SimpleNamespace()
        bases = () if self.contents is None else (self.contents.python_type(),)
        namespace: dict[str, object] = {
            name: None
            for name in ("__iter__", "__hash__", "__contains__", "__reversed__")
            if class_lookup(self.kind, name)[1] is None
        }
        namespace["__qualname__"] = self.kind.__qualname__
        try:
            kind: Callable[[], object] = type(name_in_errors(self.kind), bases, namespace)
            return kind()
        except TypeError:  # bool and the like cannot be derived from
            return super().stand_in()

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Hash by identity if the class does; inline `__hash__` if it is Python and gives a known value."""
        owner, raw = class_lookup(self.kind, "__hash__")
        if owner in (object, torch.nn.Module, BaseException):
            ctx.guards.told_apart(self)
            return ("object", id(self.identity()))
        if raw is None:
            self.refuse(ctx, "hash", hash)
        method = self.method(ctx, "__hash__")
        if method is None and self.contents is not None:
            if self.contents.python_type().__hash__ is None:
                self.refuse(ctx, "hash", hash)
            return self.contents.hash_token(ctx)
        answer = ctx.realize(ctx.call(method, [], {})) if method is not None else self
        number = self.answered(ctx, "__hash__", answer, hash).constant() if answer is not self else None
        if not isinstance(number, int):
            self.unsupported("hash by a rule of its own", UNSUPPORTED_OBJECT)
        return HashToken(ctx, self, number)

    def answered(self, ctx: CaptureContext, name: str, answer: Value, function: Callable[[Any], object]) -> Value:
        """Return what `function(object)` makes of the answer of a special method: Python itself checks it."""
        whole = isinstance(answer, SizeValue) and answer.kind is int
        if whole and (name == "__index__" or (name in _WORDS and _is_no_less(ctx, answer))):
            return answer
        if name in _WORDS and isinstance(answer, ObjectValue):
            answer = answer.as_index(ctx)
        if not answer.is_constant():
            return answer
        known = answer.constant()
        fits = name not in _WORDS or (isinstance(known, int) and 0 <= known < sys.maxsize)
        if type(known) is _ANSWERS[name] and fits:
            return answer
        return fold(ctx, function, type(told_name(self.kind), (), {name: lambda *args: known})())

    def as_index(self, ctx: CaptureContext) -> Value:
        """Evaluate `operator.index(object)`."""
        if isinstance(self.contents, Constant) and issubclass(self.kind, int):
            return self.contents  # Python does not ask a whole number
        answer = self._special(ctx, "__index__")
        if answer is not None:
            return self.answered(ctx, "__index__", answer, operator.index)
        return self

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `object(*args)`."""
        method = self.method(ctx, "__call__")
        if method is None:
            if class_lookup(self.kind, "__call__")[0] is None:
                self.refuse(ctx, "call", lambda value: value())
            self.unsupported("call", UNKNOWN_CALLEE)
        demand_method_arguments(ctx, self, class_lookup(self.kind, "__call__")[1], args, kwargs, bound=False)
        return ctx.calls.hand_on(self, method, args, kwargs)

    def _special(self, ctx: CaptureContext, name: str, *args: Value) -> Value | None:
        method = self.method(ctx, name)
        return None if method is None else ctx.realize(ctx.call(method, list(args), {}))

    def truth(self, ctx: CaptureContext) -> bool:
        """Evaluate `bool(object)`."""
        verdict = self._special(ctx, "__bool__")
        if verdict is not None:
            return self.answered(ctx, "__bool__", verdict, bool).truth(ctx)
        of_number = self.contents is not None and defines(self.contents.python_type(), "__bool__")
        size = None if of_number else self._special(ctx, "__len__")
        if size is not None:
            return self.answered(ctx, "__len__", size, len).truth(ctx)
        return self.contents.truth(ctx) if self.contents is not None else True

    def iterate(self, ctx: CaptureContext) -> Value:
        """Evaluate `iter(object)`."""
        iterator = self._special(ctx, "__iter__")
        if iterator is not None:
            if not defines(iterator.python_type(), "__next__"):
                ctx.throw(TypeError, f"iter() returned non-iterator of type '{told_name(iterator.python_type())}'")
            return iterator
        if class_lookup(self.kind, "__iter__")[1] is None:
            self.refuse(ctx, "iteration", iter)
        if self.contents is not None and defines(self.contents.python_type(), "__iter__"):
            return self.contents.iterate(ctx)
        if self.method(ctx, "__getitem__") is not None and class_lookup(self.kind, "__iter__")[0] is None:
            return _hinted_by(self, IteratorValue(SEQUENCE_ITERATOR, _ByPosition(ctx, self), ctx))
        self.refuse(ctx, "iteration", iter)

    def gathered(self, ctx: CaptureContext) -> list[Value]:
        """Evaluate `list(object)`, which asks `__len__` or `__length_hint__`; a TypeError of theirs is no error."""
        return list(self.each(ctx, hinted=True))

    def ask_hint(self, ctx: CaptureContext) -> None:
        """Ask `__len__` or `__length_hint__`."""
        self.length_hint(ctx)

    def length_hint(self, ctx: CaptureContext) -> Value | None:
        """Evaluate `operator.length_hint(object)`; None where it has none."""
        length = unless_refused(ctx, self.length) if class_lookup(self.kind, "__len__")[0] is not None else None
        if length is not None:
            return length
        hint = unless_refused(ctx, lambda ctx: self._special(ctx, "__length_hint__"))
        if hint is None or (isinstance(hint, Constant) and hint.value is NotImplemented):
            return None
        return self.answered(ctx, "__length_hint__", hint, operator.length_hint)

    def next(self, ctx: CaptureContext) -> Value:
        """Evaluate `next(object)`."""
        element = self._special(ctx, "__next__")
        if element is None:
            self.refuse(ctx, "next", next)
        return element

    def length(self, ctx: CaptureContext) -> Value:
        """Evaluate `len(object)`."""
        size = self._special(ctx, "__len__")
        if size is not None:
            return self.answered(ctx, "__len__", size, len)
        if self.contents is None or not defines(self.contents.python_type(), "__len__"):
            self.refuse(ctx, "len", len)
        return self.contents.length(ctx)

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Evaluate `object[key]`."""
        element = self._special(ctx, "__getitem__", key)
        if element is not None:
            return element
        if self.contents is None or not defines(self.contents.python_type(), "__getitem__"):
            self.refuse(ctx, "subscript", operator.getitem, key)
        return self._item_of_contents(ctx, self.contents, key)

    def _item_of_contents(self, ctx: CaptureContext, contents: Value, key: Value) -> Value:
        """Evaluate the `__getitem__` of the builtin type, which asks the class for the missing items of a dict."""
        found = contents.find(ctx, key) if isinstance(contents, DictValue) else None
        if found is not None:
            return found
        missing = self._special(ctx, "__missing__", key) if isinstance(contents, DictValue) else None
        if missing is not None:
            return missing
        return contents.get_item(ctx, key)

    def set_item(self, ctx: CaptureContext, key: Value, value: Value) -> None:
        """Evaluate `object[key] = value`."""
        if self._special(ctx, "__setitem__", key, value) is None:
            if self.contents is None:
                self._demand_neither(ctx, "__setitem__", "__delitem__")
                self.refuse(ctx, "item assignment", operator.setitem, key, value)
            self.contents.set_item(ctx, key, value)

    def del_item(self, ctx: CaptureContext, key: Value) -> None:
        """Evaluate `del object[key]`."""
        if self._special(ctx, "__delitem__", key) is None:
            if self.contents is None:
                self._demand_neither(ctx, "__delitem__", "__setitem__")
                self.refuse(ctx, "item deletion", operator.delitem, key)
            self.contents.del_item(ctx, key)

    def _demand_neither(self, ctx: CaptureContext, missing: str, other: str) -> None:
        """Raise what Python raises for one of two methods that share a slot, where the class has the other only."""
        if self.method(ctx, other) is not None:
            ctx.throw(AttributeError, missing)

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Evaluate `item in object`."""
        answer = self._special(ctx, "__contains__", item)
        if answer is not None:
            return answer.truth(ctx)
        if class_lookup(self.kind, "__contains__")[1] is None:
            self.refuse(ctx, "membership test", lambda value: None in value)
        if self.contents is not None and defines(self.contents.python_type(), "__contains__"):
            return self.contents.contains(ctx, item)
        if class_lookup(self.kind, "__contains__")[0] is not None or not any(
            self.method(ctx, name) is not None for name in ("__iter__", "__getitem__")
        ):
            self.refuse(ctx, "membership test", lambda value: None in value)
        return super().contains(ctx, item)

    def call_native(self, ctx: CaptureContext, method: Value, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the few methods of object that programs call, and methods of dict and list on subclasses."""
        assert isinstance(method, NativeMethod)
        name = method.name
        if self.contents is not None and method.kind is not object:
            if name in ("copy", "__copy__") and self.contents.python_type() in OF_OWN_CLASS:
                self.unsupported(f"method {name!r}", BUILTIN_METHOD)
            if name == "__getitem__" and len(args) == 1 and not kwargs:
                return self._item_of_contents(ctx, self.contents, ctx.realize(args[0]))
            try:
                result = self.contents.call_method(ctx, name, args, kwargs)
            except Raised as raised:
                self._refuse_by_own_name(ctx, raised, method, args, kwargs)
                raise
            if result is self.contents and isinstance(result, SetValue) and result.kind is frozenset and name == "copy":
                return SetValue.of_members(result)
            return self if result is self.contents or _is_filled_in(self.contents, name, result) else result
        if name in ("__init__", "__init_subclass__"):
            return Constant(None)
        if name == "__setattr__":
            self.set_plain(ctx, str(ctx.realize(args[0]).constant()), args[1])
            return Constant(None)
        if name == "__delattr__":
            self.del_plain(ctx, str(ctx.realize(args[0]).constant()))
            return Constant(None)
        if name in ("__getattribute__", "__getattr__"):
            attribute = str(ctx.realize(args[0]).constant())
            attribute_value = self.generic_attr(ctx, attribute)
            if attribute_value is None:
                ctx.throw(AttributeError, f"'{name_in_errors(self.kind)}' object has no attribute '{attribute}'")
            return attribute_value
        if name == "__eq__" or (name == "__ne__" and self.method(ctx, "__eq__") is None):
            same = self.identity() is ctx.realize(args[0]).identity()
            return Constant(same == (name == "__eq__")) if same else Constant(NotImplemented)
        if name == "__ne__":
            equal = ctx.realize(self.call_method(ctx, "__eq__", args, {}))
            return equal if equal.identity() is NotImplemented else Constant(not equal.truth(ctx))
        if name in ("__lt__", "__le__", "__gt__", "__ge__"):
            return Constant(NotImplemented)
        if name == "__dir__":
            return ctx.call(ctx.known(object.__dir__), [self], {})
        if name == "__format__" and method.kind is object and not issubclass(ctx.realize(args[0]).python_type(), str):
            self.refuse(ctx, name, object.__format__, *args)
        if name in ("__format__", "__str__") and method.kind is object:
            return ctx.call(ctx.known({"__format__": format, "__str__": repr}[name]), [self, *args], {})
        if name == "__hash__":
            return ctx.call(ctx.known(object.__hash__), [self], {})
        return super().call_native(ctx, method, args, kwargs)

    def _refuse_by_own_name(
        self, ctx: CaptureContext, raised: Raised, method: NativeMethod, args: Arguments, kwargs: Keywords
    ) -> None:
        """Raise what C raises for an instance of the subclass, which some of its errors name."""
        contents = self.contents  # a number that varies is a constant too, once it is asked for
        if not getattr(raised.value, "of_interpreter", False) or contents is None or not contents.is_constant():
            return
        held = contents.constant()
        if not isinstance(contents, Constant) and not isinstance(held, int | float):
            return
        named: Any = type(name_in_errors(self.kind), (type(held),), {})
        descriptor: Any = getattr(method.kind, method.name)
        owner: Any = named(held)
        real = descriptor.__get__(owner) if method.bound else functools.partial(descriptor, owner)
        given, named_ones = [ctx.realize(arg) for arg in args], {key: ctx.realize(arg) for key, arg in kwargs.items()}
        fold(ctx, real, *(arg.stand_in() for arg in given), **{key: arg.stand_in() for key, arg in named_ones.items()})

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new instance and fill it; made first, so that it may refer to itself."""
        name = out.fresh()
        base = next(base for base in self.kind.__mro__ if is_native(base) and base is not Generic)
        argument = "" if not isinstance(self.contents, Constant) else f", {out.value(self.contents)}"
        if isinstance(self.contents, SetValue) and self.contents.kind is frozenset:
            argument = f", {self.contents.rebuild(out)}"
            made = out.name_of(self)
            if made is not None:  # one of its members holds it, and has made it of them
                return made
        out.line(f"{name} = {out.inject(base)}.__new__({out.class_name(self.kind)}{argument})")
        out.bind(self, name)
        namespace = f"{name}.__dict__" if reads_plainly(self.kind) else f"{out.inject(own_namespace)}({name})"
        for entry in self.namespace.entries.values():
            out.line(f"{namespace}[{out.value(entry.key)}] = {out.value(entry.value)}")
        if self.contents is not None and not argument:
            for line in self.contents.fill_instance(name, base, out):
                out.line(line)
        for slot, value in self.slots.items():
            out.line(f"{out.inject(object.__setattr__)}({name}, {slot!r}, {out.value(value)})")
        return name


def _is_filled_in(contents: Value, name: str, result: Value) -> bool:
    """Return whether a text that is filled in had no place for anything: then C gives the text itself."""
    literals = isinstance(contents, Constant) and isinstance(result, Constant)
    return literals and name in ("format", "format_map", "__mod__") and result.constant() is contents.constant()


def new_object(kind: type) -> ObjectValue:
    """Return a fresh instance without having run `__init__`."""
    for base, maker in INSTANCES.items():
        if issubclass(kind, base):
            return maker(kind)
    instance = ObjectValue(kind)
    container: type | None = next((base for base in _CONTAINERS if issubclass(kind, base)), None)
    if container is None:
        return instance
    if container in (list, collections.deque):
        instance.hold(ListValue([], kind=container))
    else:
        instance.hold(SetValue(container) if container in (set, frozenset) else DictValue(container))
    return instance


def _hinted_by(owner: ObjectValue, iterator: IteratorValue) -> IteratorValue:
    iterator.owner = owner if class_lookup(owner.kind, "__len__")[0] is not None else None
    return iterator


class _ByPosition(Iterator[Value]):
    """Gives `owner[0]`, `owner[1]`, ... until IndexError or StopIteration; another error does not end it."""

    def __init__(self, ctx: CaptureContext, owner: ObjectValue) -> None:
        self.ctx = ctx
        self.owner: ObjectValue | None = owner
        self.position = 0

    def __next__(self) -> Value:
        if self.owner is None:
            raise StopIteration
        try:
            element = self.owner.get_item(self.ctx, Constant(self.position))
        except Raised as raised:
            if not issubclass(raised.value.python_type(), IndexError | StopIteration):
                raise
            self.owner = None
        else:
            self.position += 1
            return element
        raise StopIteration


def _from_the_end(ctx: CaptureContext, owner: ObjectValue) -> Iterator[Value]:
    """Give the elements of an object with `__len__` and `__getitem__`, the last first."""
    size = owner.length(ctx).constant()
    assert isinstance(size, int)
    return (owner.get_item(ctx, Constant(position)) for position in range(size - 1, -1, -1))


_NO_NAMESPACE = " and no __dict__ for setting new attributes" if sys.version_info >= (3, 13) else ""


def _is_plain_space(kind: type) -> bool:
    return class_lookup(kind, "__eq__")[0] is types.SimpleNamespace


class OpaqueValue(Value):
    """An object of a type written in C that capture does not know; it can only be passed on."""

    has_text = False

    def __init__(self, real: object, source: Source) -> None:
        self.real = real
        self.source = source

    def python_type(self) -> type:
        """Return its type."""
        return type(self.real)

    def describe(self) -> str:
        """Return its type's name."""
        return f"{type(self.real).__qualname__} object"

    def identity(self) -> object:
        """Return the object."""
        return self.real

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give the class; methods may be looked up, so that the call is what breaks."""
        if name == "__class__" and class_lookup(type(self.real), name)[0] is object:
            return ctx.known(type(self.real))
        if class_lookup(type(self.real), name)[0] is None:  # not by hasattr, which may make `__annotations__`
            self.unsupported(f"attribute {name!r}", UNSUPPORTED_OBJECT)
        if isinstance(class_lookup(type(self.real), name)[1], types.MethodDescriptorType):
            return MethodOf(self, name)
        self.unsupported(f"attribute {name!r}", UNSUPPORTED_OBJECT)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Break at the call."""
        self.unsupported(f"method {name!r}", UNKNOWN_CALLEE)

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Break at the call."""
        self.unsupported("call", UNKNOWN_CALLEE)

    def truth(self, ctx: CaptureContext) -> bool:
        """Break where its rule is not known."""
        if not self.always_true:
            self.unsupported("truth value", UNSUPPORTED_OBJECT)
        return True
