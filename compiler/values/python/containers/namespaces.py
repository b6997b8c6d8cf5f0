"""The namespaces of modules, as `globals()` gives them."""

from ...constant import Constant
from ...reasons import ARGUMENT_NOT_KNOWN, BUILTIN_METHOD
from ...type_attributes import type_attribute
from ...value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from .sequences import call_dunder


class GlobalsValue(Value):
    """What `globals()` gives: the namespace of a module, read and written name by name."""

    always_true = True

    def __init__(self, namespace: dict[str, object]) -> None:
        self.namespace = namespace

    def python_type(self) -> type:
        """Return dict."""
        return dict

    def identity(self) -> object:
        """Return the dictionary."""
        return self.namespace

    def _name(self, ctx: CaptureContext, key: Value) -> str:
        key = ctx.realize(key)
        name = key.constant() if key.is_constant() else None
        return name if isinstance(name, str) else self.unsupported("a key that is not a known name", ARGUMENT_NOT_KNOWN)

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Evaluate `globals()[name]`."""
        value = ctx.effects.own_global(self.namespace, self._name(ctx, key))
        if value is None:
            ctx.throw(KeyError, self._name(ctx, key))
        return value

    def set_item(self, ctx: CaptureContext, key: Value, value: Value) -> None:
        """Assign a global."""
        ctx.effects.set_global(self.namespace, self._name(ctx, key), value)

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Evaluate `name in globals()`."""
        return ctx.effects.own_global(self.namespace, self._name(ctx, item)) is not None

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method."""
        return type_attribute(ctx, self, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate get and the explicit special methods."""
        if name == "get" and 1 <= len(args) <= 2:
            value = ctx.effects.own_global(self.namespace, self._name(ctx, args[0]))
            return value or ctx.realize(args[1] if len(args) == 2 else Constant(None))
        if name in ("__getitem__", "__contains__", "__setitem__"):
            return call_dunder(ctx, self, name, args)
        self.unsupported(f"method {name!r}", BUILTIN_METHOD)

    def rebuild(self, out: Rebuilder) -> str:
        """Return the dictionary."""
        return out.inject(self.namespace)
