"""`os.environ`: variables are read now and guarded one by one."""

import os

from ..constant import Constant, MethodOf
from ..guard import GuardKind
from ..python.objects.instances import OpaqueValue
from ..reasons import ARGUMENT_NOT_KNOWN, ATTRIBUTE, BUILTIN_METHOD
from ..rule_tables import wraps_type
from ..source import Injected, Source
from ..value import Arguments, CaptureContext, Keywords, Rebuilder, Value


class EnvironmentValue(Value):
    """The process environment, read only."""

    def python_type(self) -> type:
        """Return the type of `os.environ`."""
        return type(os.environ)

    def identity(self) -> object:
        """Return `os.environ`."""
        return os.environ

    def _read(self, ctx: CaptureContext, key: Value) -> str | None:
        key = ctx.realize(key)
        name = key.constant() if key.is_constant() else None
        if not isinstance(name, str):
            self.unsupported("a variable whose name is not known", ARGUMENT_NOT_KNOWN)
        setting = os.environ.get(name)
        place = Injected(os.environ)
        text = f".get({name!r}) == {setting!r}".replace("{", "{{").replace("}", "}}")
        ctx.guards.add(place, GuardKind.EXPRESSION, "{0}" + text)
        return setting

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method."""
        if not callable(getattr(type(os.environ), name, None)):
            self.unsupported(f"attribute {name!r}", ATTRIBUTE)
        return MethodOf(self, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `get`."""
        if name != "get":
            self.unsupported(f"method {name!r}", BUILTIN_METHOD)
        setting = self._read(ctx, args[0])
        default = args[1] if len(args) > 1 else kwargs.get("default", Constant(None))
        return Constant(setting) if setting is not None else ctx.realize(default)

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Evaluate `os.environ[key]`."""
        setting = self._read(ctx, key)
        if setting is None:
            ctx.throw(KeyError, ctx.realize(key).constant())
        return Constant(setting)

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Evaluate `key in os.environ`."""
        return self._read(ctx, item) is not None

    def rebuild(self, out: Rebuilder) -> str:
        """Return `os.environ`."""
        return out.inject(os.environ)


@wraps_type(type(os.environ))
def _environment(ctx: CaptureContext, value: object, source: Source) -> Value:
    if value is not os.environ:
        return OpaqueValue(value, source)
    ctx.guards.add(source, GuardKind.IDENTITY, value)
    return EnvironmentValue()
