"""`threading.local()` from outside: an object whose attributes are those that this thread has given to it."""

import threading

from ..constant import Constant
from ..guard import ABSENT, GuardKind, look_up
from ..rule_tables import wraps_type
from ..source import Attribute, Source
from ..value import CaptureContext, Value
from .containers.mappings import DictValue
from .objects.instances import OpaqueValue


class ThreadLocalValue(OpaqueValue):
    """One `threading.local`; its attributes are the entries of a dictionary, which each thread has of its own."""

    def __init__(self, real: object, source: Source) -> None:
        super().__init__(real, source)
        self.place = source

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Read an attribute of this thread; what the type has comes first where it is no plain attribute."""
        own = self._attributes(ctx)
        if name == "__dict__":
            return own
        found = own.find(ctx, Constant(name)) if look_up(threading.local, name)[1] is ABSENT else None
        if found is not None:
            return found
        if look_up(threading.local, name)[1] is not ABSENT:
            return super().get_attr(ctx, name)
        ctx.throw(AttributeError, f"'_thread._local' object has no attribute '{name}'")

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Give this thread an attribute."""
        if look_up(threading.local, name)[1] is not ABSENT:
            super().set_attr(ctx, name, value)
        self._attributes(ctx).set_item(ctx, Constant(name), value)

    def del_attr(self, ctx: CaptureContext, name: str) -> None:
        """Take an attribute away."""
        own = self._attributes(ctx)
        if look_up(threading.local, name)[1] is not ABSENT or own.find(ctx, Constant(name)) is None:
            super().del_attr(ctx, name)
        own.del_item(ctx, Constant(name))

    def _attributes(self, ctx: CaptureContext) -> DictValue:
        assert isinstance(self.real, threading.local)
        attributes = ctx.realize(ctx.wrap(vars(self.real), Attribute(self.place, "__dict__")))
        assert isinstance(attributes, DictValue)
        return attributes


@wraps_type(threading.local)
def _thread_local(ctx: CaptureContext, value: object, source: Source) -> Value:
    """Wrap one from outside; a subclass may have an `__init__` that each thread runs."""
    ctx.guards.add(source, GuardKind.TYPE, threading.local)
    return ThreadLocalValue(value, source)
