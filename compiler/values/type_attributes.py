"""Attributes of objects that have none of their own: what their type has, found by its MRO without the metaclass."""

import types

from .constant import MethodOf
from .guard import ABSENT, look_up
from .reasons import ATTRIBUTE, Break
from .value import CaptureContext, Value

_METHODS = (
    types.FunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
    classmethod,
    staticmethod,
)


def require_attribute(ctx: CaptureContext, owner: Value, name: str) -> object:
    """Return what the type of the owner has under a name; raise Python's AttributeError if that is nothing.

    What only the metaclass has (`type.__call__`) does not count, as `hasattr(kind, name)` would have it.
    """
    kind = owner.python_type()
    raw = look_up(kind, name)[1]
    if raw is not ABSENT:
        return raw
    if kind.__dictoffset__ and owner.source is not None:
        owner.unsupported(f"attribute {name!r}", ATTRIBUTE)  # the object may have it
    try:
        getattr(owner.stand_in(), name)
    except AttributeError as error:
        ctx.throw(AttributeError, *error.args)
    except Break:
        pass
    path = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    ctx.throw(AttributeError, f"'{path}' object has no attribute '{name}'")


def type_attribute(ctx: CaptureContext, owner: Value, name: str) -> Value:
    """Evaluate `owner.name` for an object of a builtin type whose `call_method` answers for every method."""
    raw = require_attribute(ctx, owner, name)
    if name == "__class__":
        return ctx.known(owner.python_type())
    if isinstance(raw, _METHODS):
        return MethodOf(owner, name)
    if raw is None or isinstance(raw, str):  # `__hash__` of what cannot be hashed, `__doc__`
        return ctx.known(raw)
    owner.unsupported(f"attribute {name!r}", ATTRIBUTE)
