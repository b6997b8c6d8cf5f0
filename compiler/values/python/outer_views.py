"""Views of dictionaries that come from outside: those that live across a break, mostly."""

import gc
from dataclasses import dataclass

from ..guard import GuardKind
from ..rule_tables import wraps_type
from ..source import Inject, Source
from ..value import CaptureContext, Value
from .containers.mapping_views import DictView
from .containers.mappings import DictValue
from .objects.instances import OpaqueValue

_PARTS: dict[type, str] = {type(getattr({}, part)()): part for part in ("keys", "values", "items")}


def viewed(view: object) -> object:
    """Return the dictionary that a view shows: the one object it holds."""
    return gc.get_referents(view)[0]


@dataclass(frozen=True, slots=True)
class Viewed(Source):
    """The dictionary that a view shows."""

    of: Source

    def base(self) -> Source:
        """Return the view."""
        return self.of

    def text(self, base: str, inject: Inject) -> str:
        """Return `viewed(base)`."""
        return f"{inject(viewed)}({base})"


class OuterView(DictView):
    """A view from outside."""

    def __init__(self, real: object, owner: DictValue, part: str, source: Source) -> None:
        super().__init__(owner, part)
        self.real = real
        self.source = source

    def identity(self) -> object:
        """Return the real view."""
        return self.real


@wraps_type(*_PARTS)
def _view(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.TYPE, type(value))
    mapping = viewed(value)
    if type(mapping) is not dict:
        return OpaqueValue(value, source)
    owner = ctx.realize(ctx.wrap(mapping, Viewed(source)))
    if not isinstance(owner, DictValue):
        return OpaqueValue(value, source)
    return OuterView(value, owner, _PARTS[type(value)], source)
