"""What the program does to classes while it is evaluated: attributes set and deleted, kept apart from the real class.

`class_lookup` asks here first, so every later look-up of the capture sees the change; the real class is changed when
the graph has run.
"""

import types

from ...reasons import CLASS_DEFINITION, Break
from ...source import Injected
from ...value import CaptureContext, Rebuilder, Value
from .attributes import MISSING, ValueHolder, class_lookup, may_change, told_name
from .functions import FunctionValue


class ClassChanges(Value):
    """The changes of one class: the value under each name, None for a deleted one."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.source = Injected(kind)
        self.values: dict[str, Value | None] = {}
        self.raw: dict[str, object] = {}  # what a look-up finds

    def python_type(self) -> type:
        """Return the metaclass."""
        return type(self.kind)

    def replay(self, out: Rebuilder) -> list[str]:
        """Set and delete the attributes of the real class."""
        name, lines = out.inject(self.kind), []
        for attribute, value in self.values.items():
            if value is None:
                lines.append(f"if {attribute!r} in {name}.__dict__: del {name}.{attribute}")
            else:
                lines.append(f"{name}.{attribute} = {out.value(value)}")
        return lines


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
    return ValueHolder(value) if descriptor is None else descriptor(ctx)


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
    changes.values[name] = value
    changes.raw[name] = MISSING if value is None else as_raw(ctx, value)
    ctx.effects.mutated(changes)
