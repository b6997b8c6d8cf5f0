"""What torch.distributions does on its classes: a lazy property, asked for on the class, is made again each time."""

from ...base.torch_facts import lazy_class_property
from ..python.objects.classes import constructs
from ..python.objects.functions import FunctionValue
from ..reasons import CONSTRUCTION, Break
from ..source import Injected
from ..value import Arguments, CaptureContext, Keywords, Value


@constructs(lazy_class_property)
def _lazy_class_property(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    wrapped = ctx.realize(args[0]) if len(args) == 1 and not kwargs else None
    if not isinstance(wrapped, FunctionValue) or wrapped.real is None:
        raise Break(CONSTRUCTION, f"construction of {kind.__name__} around something that is not a function of its own")
    lazy = kind(wrapped.real)
    return ctx.wrap(lazy, Injected(lazy))
