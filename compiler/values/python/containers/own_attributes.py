"""Attributes of containers with a `__dict__` of their own: instances of tuple's subclasses, ordered dictionaries."""

from ...constant import Constant
from ...guard import look_up
from ...reasons import ATTRIBUTE
from ...source import Attribute
from ...value import CaptureContext, Value


class OwnAttributes(Value):
    """A container whose instances may have attributes beside what they hold.

    namespace: the `__dict__` of one from outside, not looked at before it is asked for. What is made while capturing
    has none: to set an attribute is a break, and what is rebuilt comes from outside afterwards.
    """

    namespace: Value | None = None

    def find_namespace(self, ctx: CaptureContext, real: object) -> None:
        """Take the `__dict__` of the real object, if its class gives it one."""
        if type(real).__dictoffset__ and self.source is not None:
            self.namespace = ctx.lazy(object.__getattribute__(real, "__dict__"), Attribute(self.source, "__dict__"))

    def own_attribute(self, ctx: CaptureContext, name: str) -> Value | None:
        """Return the `__dict__`, or what it has under a name; None where the class is to be asked."""
        kind = self.python_type()
        if name == "__dict__" and kind.__dictoffset__:
            if self.namespace is None:
                self.unsupported("attribute '__dict__'", ATTRIBUTE)
            return ctx.realize(self.namespace)
        if self.namespace is None or hasattr(type(look_up(kind, name)[1]), "__set__"):
            return None
        namespace, key = ctx.realize(self.namespace), Constant(name)
        return namespace.get_item(ctx, key) if namespace.contains(ctx, key) else None

    def demand_no_attributes(self, ctx: CaptureContext, operation: str) -> None:
        """Break at an operation that would have to do with the attributes of the object if it had any."""
        if self.namespace is not None and ctx.realize(self.namespace).truth(ctx):
            self.unsupported(operation, ATTRIBUTE)

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Break where instances have attributes; raise what Python raises elsewhere."""
        if self.python_type().__dictoffset__:
            self.unsupported(f"setting attribute {name!r}", ATTRIBUTE)
        super().set_attr(ctx, name, value)

    def del_attr(self, ctx: CaptureContext, name: str) -> None:
        """Break where instances have attributes; raise what Python raises elsewhere."""
        if self.python_type().__dictoffset__:
            self.unsupported(f"deleting attribute {name!r}", ATTRIBUTE)
        super().del_attr(ctx, name)
