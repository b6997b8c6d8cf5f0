"""What the program does to classes while it is evaluated: attributes set and deleted, kept apart from the real class.

`class_lookup` asks here first, so every later look-up of the capture sees the change; the real class is changed when
the graph has run.
"""

import types

from ...constant import Constant
from ...reasons import CLASS_DEFINITION, Break
from ...source import Attribute, Injected, Source
from ...value import CaptureContext, Rebuilder, Value
from ..containers.mappings import DictValue
from .attributes import C_DESCRIPTORS, MISSING, ValueHolder, class_lookup, may_change, told_name
from .functions import FunctionValue


class ClassChanges(Value):
    """The changes of one class: the value under each name, None for a deleted one."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.source = Injected(kind)
        self.values: dict[str, Value | None] = {}
        self.afresh: set[str] = set()  # deleted before they were set: they have gone to the end of the namespace
        self.raw: dict[str, object] = {}  # what a look-up finds

    def change(self, name: str, value: Value | None, raw: object) -> None:
        """Set an attribute, or delete it."""
        if value is not None and name in self.values and self.values[name] is None:
            self.afresh.add(name)
            del self.values[name]
        self.values[name] = value
        self.raw[name] = raw

    def python_type(self) -> type:
        """Return the metaclass."""
        return type(self.kind)

    def replay(self, out: Rebuilder) -> list[str]:
        """Set and delete the attributes of the real class."""
        name, lines = out.inject(self.kind), []
        for attribute, value in self.values.items():
            if value is None or attribute in self.afresh:
                deleter = out.inject(delattr)
                lines.append(f"if {attribute!r} in {name}.__dict__: {deleter}({name}, {attribute!r})")
            if value is not None:
                lines.append(f"{out.inject(setattr)}({name}, {attribute!r}, {out.value(value)})")
        return lines


_BOUND_BY_RULES = (*C_DESCRIPTORS, property, staticmethod, classmethod)
_DESCRIBES = ("__get__", "__set__", "__delete__")


def as_raw(ctx: CaptureContext, value: Value) -> object:
    """Return the object that stands for a value in the namespace of a class."""
    value = ctx.realize(value)
    if isinstance(value, FunctionValue):
        if value.real is not None:
            return value.real
        cells = tuple(types.CellType() for _ in value.cells)
        function = types.FunctionType(value.code, value.namespace, value.name, None, cells)
        ctx.stand_for(function, value)
        return function
    descriptor = getattr(value, "as_descriptor", None)
    if descriptor is not None:
        return descriptor(ctx)
    kind = value.python_type()
    if value.is_constant() and issubclass(kind, _BOUND_BY_RULES):
        return value.constant()
    if kind is not types.MethodType and any(class_lookup(kind, name)[0] is not None for name in _DESCRIBES):
        raise Break(CLASS_DEFINITION, f"{value.describe()} as an attribute of a class, where it is a descriptor")
    return ValueHolder(value)


def change_class(ctx: CaptureContext, kind: type, name: str, value: Value | None) -> None:
    """Evaluate `kind.name = value`, or `del kind.name`."""
    plain = type(kind).__setattr__ is type.__setattr__ and type(kind).__delattr__ is type.__delattr__
    special = name.startswith("__") and name.endswith("__")
    if not may_change(kind) or not plain or special:
        raise Break(CLASS_DEFINITION, f"setting class attribute {name!r} on class {kind.__qualname__}")
    changes = ctx.effects.class_changes.setdefault(kind, ClassChanges(kind))
    assert isinstance(changes, ClassChanges)
    if value is None and changes.raw.get(name, kind.__dict__.get(name, MISSING)) is MISSING:
        try:
            delattr(type(told_name(kind), (), {}), name)
        except AttributeError as error:
            ctx.throw(AttributeError, *error.args)
    if value is None and name not in changes.raw:
        class_lookup(kind, name)  # guards that there is something to delete
    before = changes.raw.get(name, vars(kind).get(name, MISSING))
    if before is not MISSING:
        ctx.effects.let_go(None, [before.value if isinstance(before, ValueHolder) else before])
    changes.change(name, value, MISSING if value is None else as_raw(ctx, value))
    for namespace in ctx.effects.class_namespaces.get(kind, ()):
        _show(ctx, namespace, name, value)
    ctx.effects.mutated(changes)


def class_namespace(ctx: CaptureContext, kind: type, source: Source | None = None) -> Value:
    """Return what `kind.__dict__` gives: a view of the namespace, which shows later changes as well.

    source: of one that the program was given.
    """
    original: dict[object, object] = {}
    original.update(kind.__dict__)
    namespace = DictValue(types.MappingProxyType, source or Attribute(Injected(kind), "__dict__"), original)
    changes = ctx.effects.class_changes.get(kind)
    if isinstance(changes, ClassChanges):
        for name, value in changes.values.items():
            if name in changes.afresh:
                _show(ctx, namespace, name, None)
            _show(ctx, namespace, name, value)
    ctx.effects.class_namespaces.setdefault(kind, []).append(namespace)
    return namespace


def _show(ctx: CaptureContext, namespace: Value, name: str, value: Value | None) -> None:
    """Let a view of a class's namespace show a change; the class itself is changed by `ClassChanges`."""
    assert isinstance(namespace, DictValue)
    key = Constant(name)
    token = key.hash_token(ctx)
    if value is not None:
        namespace.set_by_token(ctx, key, token, value)
    elif namespace.contains(ctx, key):
        namespace.found(ctx, key, token)
        namespace.del_by_token(ctx, key, token)
