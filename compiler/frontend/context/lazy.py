"""A value from outside that nothing has looked at yet."""

from collections.abc import Hashable

from ...values.source import Source
from ...values.value import CaptureContext, Rebuilder, Value


class LazyValue(Value):
    """A value from outside that nothing has looked at: not wrapped, not guarded."""

    def __init__(self, ctx: CaptureContext, raw: object, source: Source) -> None:
        self.ctx = ctx
        self.raw = raw
        self.source = source
        self.inner: Value | None = None

    def realize(self) -> Value:
        """Return the value, wrapped on first use."""
        if self.inner is None:
            assert self.source is not None
            self.inner = self.ctx.wrap(self.raw, self.source)
        return self.inner

    def python_type(self) -> type:
        """Return the type, guarding it."""
        return self.realize().python_type()

    def describe(self) -> str:
        """Return the description of what is there."""
        return self.realize().describe()

    def is_constant(self) -> bool:
        """Ask the value."""
        return self.realize().is_constant()

    def constant(self) -> object:
        """Ask the value."""
        return self.realize().constant()

    def identity(self) -> object:
        """Ask the value."""
        return self.realize().identity()

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Ask the value."""
        return self.realize().hash_token(ctx)

    def rebuild(self, out: Rebuilder) -> str:
        """Ask the value."""
        return out.value(self.realize())
