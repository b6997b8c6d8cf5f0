"""The attributes of an instance of user code: what class, `__dict__` and slots hold, and how they change."""

import sys
import types
from typing import Any

from ....base.real_objects.past_methods import own_namespace
from ...constant import Constant
from ...guard import ABSENT, GuardKind, Member, look_up
from ...reasons import ATTRIBUTE, UNSUPPORTED_OBJECT
from ...source import Attribute, BaseContents, Injected, Source
from ...value import CaptureContext, Raised, Rebuilder, Value
from ..containers.mappings import DictValue
from .attributes import (
    MISSING,
    bind_raw,
    class_lookup,
    guard_description,
    is_native,
    name_in_errors,
    natural_method,
    refused_by_property,
)

# Special methods that Python does not call where they are None: the class does not have what they stand for.
REFUSED_BY_NONE = frozenset({"__hash__", "__iter__", "__contains__", "__reversed__", "__copy__", "__deepcopy__"})
_NO_NAMESPACE = " and no __dict__ for setting new attributes" if sys.version_info >= (3, 13) else ""


class InstanceAttributes(Value):
    """An instance of a class written in Python, as far as its attributes go.

    Its `__dict__` is a DictValue, so reads are guarded one by one and writes are replayed in order.
    """

    def __init__(self, kind: type, real: object = MISSING, source: Source | None = None) -> None:
        self.kind = kind
        self.real = real
        self.source = source
        namespace = own_namespace(real) if real is not MISSING else None
        place = _place_of_namespace(kind, source) if source is not None and namespace is not None else None
        self.namespace = DictValue(dict, place, namespace)
        self.namespace.ordered = False
        self.slots: dict[str, Value] = {}
        self.written_slots: dict[str, Value | None] = {}  # None: deleted

    def python_type(self) -> type:
        """Return the class."""
        return self.kind

    def describe(self) -> str:
        """Return the class's name."""
        return f"{self.kind.__qualname__} object"

    def identity(self) -> object:
        """Return the real object if there is one."""
        return self if self.real is MISSING else self.real

    def method(self, ctx: CaptureContext, name: str) -> Value | None:
        """Return a special method that a class written in Python has been given, bound; None if none has been.

        One that is set to None is given as that, to be called, unless Python takes it for a refusal. A class may be
        given a method written in C, too: `__setattr__ = dict.__setitem__`.
        """
        owner, raw = class_lookup(self.kind, name)
        if raw is None:
            return None if name in REFUSED_BY_NONE else Constant(None)
        if owner is None or (not isinstance(raw, types.FunctionType) and raw is natural_method(self.kind, name)):
            return None
        return bind_raw(ctx, raw, owner, name, self, self.kind)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Evaluate `object.name` by Python's lookup rules."""
        custom = self.method(ctx, "__getattribute__")
        if custom is not None:
            return self._custom_attr(ctx, name, custom)
        try:
            attribute = self.generic_attr(ctx, name)
        except Raised as raised:  # by a property, which has the attribute looked up elsewhere so
            return self._attr_after(ctx, name, raised)
        if attribute is not None:
            return attribute
        fallback = class_lookup(self.kind, "__getattr__")[1]
        if isinstance(fallback, types.FunctionType):
            return self.missing_attr(ctx, name, fallback)
        self.guard_missing(ctx, name)
        other_fallback = self.method(ctx, "__getattr__")
        if other_fallback is not None:
            return ctx.call(other_fallback, [Constant(name)], {})
        slot = isinstance(class_lookup(self.kind, name)[1], types.MemberDescriptorType)
        kind = _full_name(self.kind) if slot and sys.version_info >= (3, 13) else name_in_errors(self.kind)
        ctx.throw(AttributeError, f"'{kind}' object has no attribute '{name}'")

    def guard_missing(self, ctx: CaptureContext, name: str) -> None:
        """Demand that neither the instance nor its class has the attribute."""
        if not isinstance(class_lookup(self.kind, name)[1], types.MemberDescriptorType) and name != "__dict__":
            # not by hasattr, which asks the metaclass too, and makes `__annotations__` of a class that has none
            ctx.guards.add(Injected(self.kind), GuardKind.MEMBER, Member(name, None, ABSENT))
        self.namespace.find(ctx, Constant(name))

    def _custom_attr(self, ctx: CaptureContext, name: str, custom: Value) -> Value:
        """Evaluate a `__getattribute__` of the class's own, then `__getattr__` if it raises AttributeError."""
        try:
            return ctx.call(custom, [Constant(name)], {})
        except Raised as raised:
            return self._attr_after(ctx, name, raised)

    def _attr_after(self, ctx: CaptureContext, name: str, raised: Raised) -> Value:
        """Evaluate `__getattr__` where the look-up has raised an AttributeError, else raise what it has raised."""
        fallback = self.method(ctx, "__getattr__")
        missing = issubclass(raised.value.python_type(), AttributeError)
        if not missing or fallback is None:
            try:
                raise raised
            finally:
                del raised  # its traceback holds this frame
        return ctx.call(fallback, [Constant(name)], {})

    def missing_attr(self, ctx: CaptureContext, name: str, fallback: types.FunctionType) -> Value:
        """Evaluate `__getattr__`."""
        self.guard_missing(ctx, name)
        return ctx.call(ctx.wrap(fallback, Injected(fallback)), [self, Constant(name)], {})

    def generic_attr(self, ctx: CaptureContext, name: str) -> Value | None:
        """Evaluate `object.__getattribute__`; None where it raises AttributeError."""
        if name == "__class__" and class_lookup(self.kind, name)[0] is object:
            return ctx.known(self.kind)
        has_namespace = _has_namespace(self.kind) or self.namespace.source is not None
        if name == "__dict__" and has_namespace and _has_plain_dict(self.kind):
            return self.namespace
        owner, raw = class_lookup(self.kind, name)
        if isinstance(raw, types.MemberDescriptorType):
            if self.contents is not None and is_native(raw.__objclass__):  # `real` of a complex number
                return self.contents.get_attr(ctx, name)
            return self._slot(ctx, name)
        if name == "__weakref__":
            self.unsupported("attribute '__weakref__'", UNSUPPORTED_OBJECT)
        is_data = owner is not None and _class_has(raw, "__get__") and _is_data(raw)
        if is_data and owner is not None:
            return bind_raw(ctx, raw, owner, name, self, self.kind)
        attribute = self._own(ctx, name, guard_absence=owner is not None and not _is_dunder(name))
        if attribute is not None:
            return attribute
        if owner is None:
            return None
        return bind_raw(ctx, raw, owner, name, self, self.kind)

    def _own(self, ctx: CaptureContext, name: str, *, guard_absence: bool) -> Value | None:
        unread, key = self.namespace.unread, Constant(name)
        if unread is not None and name not in unread and not guard_absence and name not in self.namespace.entries:
            return None  # special methods are looked up on the class: nothing to guard
        return self.namespace.find(ctx, key)

    def _slot(self, ctx: CaptureContext, name: str) -> Value | None:
        if name in self.slots:
            self.slots[name] = ctx.realize(self.slots[name])
            return self.slots[name]
        if self.real is MISSING or name in self.written_slots:
            return None
        content, raw = self._slot_content(name), class_lookup(self.kind, name)[1]
        plain = reads_plainly(self.kind)
        if content is MISSING:
            if not plain:
                self.unsupported(f"the empty slot {name!r} of an object with its own way to read attributes", ATTRIBUTE)
            if self.source is not None:
                ctx.guards.add(self.source, GuardKind.LACKS_ATTRIBUTE, name)
            return None
        assert self.source is not None
        getter: Any = getattr(raw, "__get__", None)
        place = Attribute(self.source, name) if plain else BaseContents(self.source, getter)
        self.slots[name] = ctx.wrap(content, place)
        return self.slots[name]

    def _slot_content(self, name: str) -> object:
        """Return what a slot holds, looked at or not; MISSING for an empty one."""
        if name in self.slots or name in self.written_slots or self.real is MISSING:
            return self.slots.get(name, MISSING)
        slot = look_up(self.kind, name)[1]
        try:
            return slot.__get__(self.real) if isinstance(slot, types.MemberDescriptorType) else MISSING
        except AttributeError:
            return MISSING

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Evaluate `object.name = value`."""
        custom = self.method(ctx, "__setattr__")
        if custom is not None:
            ctx.call(custom, [Constant(name), value], {})
        else:
            self.set_plain(ctx, name, value)

    def set_plain(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Evaluate `object.__setattr__(self, name, value)`."""
        owner, raw = class_lookup(self.kind, name)
        if isinstance(raw, property):
            if raw.fset is None:
                refused_by_property(ctx, self, lambda owner: raw.__set__(owner, None))
            ctx.call(ctx.wrap(raw.fset, Injected(raw.fset)), [self, value], {})
        elif isinstance(raw, types.MemberDescriptorType) and self.contents is not None and is_native(raw.__objclass__):
            self.contents.set_attr(ctx, name, value)  # the factory of a defaultdict
        elif isinstance(raw, types.MemberDescriptorType):
            before = self._slot_content(name)
            ctx.effects.let_go(self, [] if before is MISSING else [before])
            self.slots[name] = self.written_slots[name] = value
            ctx.effects.mutated(self)
        elif owner is not None and _class_has(raw, "__set__"):
            setter = class_lookup(type(raw), "__set__")[1]
            if not isinstance(setter, types.FunctionType):
                self.unsupported(f"setting attribute {name!r} through a descriptor written in C", ATTRIBUTE)
            ctx.call(ctx.wrap(setter, Injected(setter)), [ctx.wrap(raw, Injected(raw)), self, value], {})
        elif name == "__class__" or name == "__dict__":
            self.unsupported(f"setting {name}", ATTRIBUTE)
        elif not _has_namespace(self.kind):
            words = f"'{name_in_errors(self.kind)}' object has no attribute '{name}'{_NO_NAMESPACE}"
            if owner is not None:
                words = f"'{name_in_errors(self.kind)}' object attribute '{name}' is read-only"
            ctx.throw(AttributeError, words)
        else:
            self.namespace.set_item(ctx, Constant(name), value)

    def del_attr(self, ctx: CaptureContext, name: str) -> None:
        """Evaluate `del object.name`."""
        custom = self.method(ctx, "__delattr__")
        if custom is not None:
            ctx.call(custom, [Constant(name)], {})
        else:
            self.del_plain(ctx, name)

    def del_plain(self, ctx: CaptureContext, name: str) -> None:
        """Evaluate `object.__delattr__(self, name)`."""
        owner, raw = class_lookup(self.kind, name)
        if isinstance(raw, property):
            if raw.fdel is None:
                refused_by_property(ctx, self, raw.__delete__)
            ctx.call(ctx.wrap(raw.fdel, Injected(raw.fdel)), [self], {})
        elif isinstance(raw, types.MemberDescriptorType):
            if self._slot(ctx, name) is None:
                ctx.throw(AttributeError, name)
            ctx.effects.let_go(self, [self.slots.pop(name)])
            self.written_slots[name] = None
            ctx.effects.mutated(self)
        elif owner is not None and (_class_has(raw, "__delete__") or _class_has(raw, "__set__")):
            deleter = class_lookup(type(raw), "__delete__")[1]
            if not isinstance(deleter, types.FunctionType):
                self.unsupported(f"deleting attribute {name!r} through a descriptor", ATTRIBUTE)
            ctx.call(ctx.wrap(deleter, Injected(deleter)), [ctx.wrap(raw, Injected(raw)), self], {})
        elif self.namespace.find(ctx, Constant(name)) is None:
            words = f"has no attribute '{name}'"
            if not _has_namespace(self.kind):
                words = f"attribute '{name}' is read-only" if owner is not None else words + _NO_NAMESPACE
            ctx.throw(AttributeError, f"'{name_in_errors(self.kind)}' object {words}")
        else:
            self.namespace.del_item(ctx, Constant(name))

    def replay(self, out: Rebuilder) -> list[str]:
        """Write the changed slots into the original; its `__dict__` replays itself."""
        name = out.value(self)
        set_slot, delete_slot = out.inject(object.__setattr__), out.inject(object.__delattr__)
        return [
            f"{set_slot}({name}, {slot!r}, {out.value(value)})"
            if value is not None
            else f"if {out.inject(hasattr)}({name}, {slot!r}): {delete_slot}({name}, {slot!r})"
            for slot, value in self.written_slots.items()
        ]


def reads_plainly(kind: type) -> bool:
    """Return whether reading what a class in C describes, `__dict__` first of all, runs no code of the user."""
    return not isinstance(look_up(kind, "__getattribute__")[1], types.FunctionType) and _has_plain_dict(kind)


def _has_plain_dict(kind: type) -> bool:
    """Return whether no class of the user's says what `__dict__` of an instance is."""
    raw = look_up(kind, "__dict__")[1]
    return raw is ABSENT or isinstance(raw, types.GetSetDescriptorType | types.MemberDescriptorType)


def _place_of_namespace(kind: type, source: Source) -> Source:
    return Attribute(source, "__dict__") if reads_plainly(kind) else BaseContents(source, own_namespace)


def _full_name(kind: type) -> str:
    """Return a class's name in the words of Python 3.13: with its module, unless that goes without saying."""
    guard_description(kind, "__module__", "__qualname__")
    plain = kind.__module__ in ("builtins", "__main__")
    return kind.__qualname__ if plain else f"{kind.__module__}.{kind.__qualname__}"


def _has_namespace(kind: type) -> bool:
    """Return whether instances have a `__dict__`."""
    return bool(kind.__dictoffset__)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_data(raw: object) -> bool:
    return _class_has(raw, "__set__") or _class_has(raw, "__delete__")


def _class_has(raw: object, name: str) -> bool:
    """Return whether the class of a raw attribute has a special method; guarded, as it may get one later."""
    return class_lookup(type(raw), name)[0] is not None
