"""Exceptions of the evaluated program."""

import types

from .attributes import MISSING, NativeMethod, class_lookup
from .constant import Constant
from .objects import ObjectValue
from .sequences import TupleValue
from .source import Source
from .value import Arguments, CaptureContext, Keywords, Rebuilder, Value

HAS_FIELDS = (  # keep arguments in fields of their own; a new OSError may be of a subclass
    OSError, UnicodeError, SyntaxError, ImportError, NameError, AttributeError, BaseExceptionGroup,
)  # fmt: skip


class ExceptionValue(ObjectValue):
    """An exception instance."""

    def __init__(
        self, kind: type, args: list[Value], real: object = MISSING, source: Source | None = None
    ) -> None:
        super().__init__(kind, real, source)
        self.args = args
        self.cause: Value | None = None

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give args and the chain fields, else look up as for any object."""
        if name == "args":
            return TupleValue(list(self.args))
        if name == "__cause__" and self.real is MISSING:
            return self.cause or Constant(None)
        if name in ("__cause__", "__context__", "__traceback__", "__suppress_context__"):
            self.no(f"attribute {name!r}")
        if name == "value" and issubclass(self.kind, StopIteration):
            return self.args[0] if self.args else Constant(None)
        owner, raw = class_lookup(self.kind, name)
        native = owner is not None and owner.__module__ == "builtins" and isinstance(raw, types.MemberDescriptorType)
        if native and self.real is MISSING:
            self.no(f"attribute {name!r}")
        return super().get_attr(ctx, name)

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Keep the cause; a traceback is made anew by whoever raises."""
        if name == "__cause__":
            self.cause = ctx.real(value)
        elif name == "args":
            self.args = list(ctx.unpack(value))
        elif name not in ("__traceback__", "__suppress_context__"):
            super().set_attr(ctx, name, value)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `with_traceback`."""
        if name == "with_traceback":
            return self
        return super().call_method(ctx, name, args, kwargs)

    def call_native(self, ctx: CaptureContext, method: NativeMethod, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `BaseException.__init__`, which sets the arguments."""
        if method.name == "__init__":
            self.args = [ctx.real(arg) for arg in args]
            return Constant(None)
        return super().call_native(ctx, method, args, kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Make the exception."""
        name = out.fresh()
        args = "".join(f", {out.value(arg)}" for arg in self.args)
        out.line(f"{name} = {out.inject(self.kind)}.__new__({out.inject(self.kind)}{args})")
        out.know(self, name)
        native = next(base for base in self.kind.__mro__ if base.__module__ == "builtins")
        out.line(f"{out.inject(native.__init__)}({name}{args})")
        if self.cause is not None:
            out.line(f"{name}.__cause__ = {out.value(self.cause)}")
        for entry in self.namespace.entries.values():
            out.line(f"{name}.__dict__[{out.value(entry.key)}] = {out.value(entry.value)}")
        return name
