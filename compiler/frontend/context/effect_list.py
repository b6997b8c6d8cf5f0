"""EffectList: what the program changed outside, to be replayed after the graph."""

import builtins
import types
from collections.abc import Callable, Sequence

from ...base.real_objects.past_methods import is_really
from ...values.guard import GuardKind, without_finaliser
from ...values.source import Injected, Item, Source
from ...values.value import CaptureContext, Rebuilder, SideEffects, Value
from .lifetimes import break_where_lost, is_given

_UNTOUCHED = object()


class EffectList(SideEffects):
    """The objects, globals and classes that one capture has changed."""

    def __init__(self, ctx: CaptureContext, shared: dict[int, Value]) -> None:
        self.ctx = ctx
        self.shared = shared  # by id of the real object; not this part's own
        self.changed: list[Value] = []
        self.events = [0, 0]  # how often objects, and globals, have changed
        self.globals: dict[tuple[int, str], Value | None] = {}
        self.written_globals: dict[tuple[int, str], tuple[dict[str, object], str]] = {}
        self.class_changes = {}
        self.class_namespaces = {}
        self.counted: list[Callable[[Rebuilder], str]] = []
        self.alive: list[object] = []  # keeps the ids in `globals` unique

    def count(self) -> tuple[int, int]:
        """Return how much has changed so far; where this grows, something changed."""
        return self.events[0], self.events[1]

    def note_count(self, write: Callable[[Rebuilder], str]) -> None:
        """Note a statement that counts something."""
        self.counted.append(write)

    def has_changed(self, kind: type[Value]) -> bool:
        """Return whether an object from outside of this kind of value has changed."""
        return any(isinstance(value, kind) for value in self.changed)

    def changed_objects(self) -> set[int]:
        """Return the ids of the objects from outside that have changed so far."""
        changed = set(map(id, self.changed))
        return {number for number, value in self.shared.items() if id(value) in changed}

    def mutated(self, value: Value) -> None:
        """Note the first change of an object from outside."""
        self.events[0] += value.source is not None
        if value.source is not None and not any(value is seen for seen in self.changed):
            self.changed.append(value)

    def let_go(self, holder: Value | None, lost: Sequence[object]) -> None:
        """Break if a holder has let go of an object whose end can be noticed; a new one, of what was given."""
        given = self.ctx.frames.given
        for one in lost:
            if holder is None or holder.source is not None or is_given(one, given):
                break_where_lost(one, lost, given)

    def global_value(self, namespace: dict[str, object], name: str) -> Value:
        """Evaluate a global name."""
        key = (id(namespace), name)
        written = self.globals.get(key, _UNTOUCHED)
        if written is None:
            self.ctx.throw(NameError, f"name '{name}' is not defined", name=name)
        if isinstance(written, Value):
            return self.ctx.realize(written)
        self.alive.append(namespace)
        place: Source = Item(Injected(namespace), name)
        if name in namespace:
            value = namespace[name]
        else:
            self.ctx.guards.add(Injected(namespace), GuardKind.LACKS_KEY, name)
            if name not in vars(builtins):
                self.ctx.throw(NameError, f"name '{name}' is not defined", name=name)
            value, place = vars(builtins)[name], Item(Injected(vars(builtins)), name)
        if is_really(value, types.FunctionType):
            self.ctx.guards.add(place, GuardKind.IDENTITY, value)
            place = Injected(value)
        self.globals[key] = wrapped = self.ctx.wrap(value, place)
        return wrapped

    def own_global(self, namespace: dict[str, object], name: str) -> Value | None:
        """Return what a namespace has under a name, builtins left out; None if nothing."""
        written = self.globals.get((id(namespace), name), _UNTOUCHED)
        if written is None:
            return None
        if written is _UNTOUCHED and name not in namespace:
            self.ctx.guards.add(Injected(namespace), GuardKind.LACKS_KEY, name)
            return None
        return self.global_value(namespace, name)

    def written_global(self, namespace: dict[str, object], name: str) -> tuple[Value | None] | None:
        """Return what was assigned to a global name in this capture, (None,) if it was deleted; None if neither."""
        key = (id(namespace), name)
        if key not in self.written_globals:
            return None
        written = self.globals[key]
        return (written if isinstance(written, Value) else None,)

    def changed_names(self, namespace: dict[str, object]) -> dict[str, bool]:
        """Return the global names that were assigned (True) or deleted in this capture."""
        changed = [(key, name) for key, (owner, name) in self.written_globals.items() if owner is namespace]
        return {name: self.globals[key] is not None for key, name in changed}

    def set_global(self, namespace: dict[str, object], name: str, value: Value | None) -> None:
        """Assign or delete a global; replayed after the graph."""
        key = (id(namespace), name)
        if value is None and self.globals.get(key, _UNTOUCHED) is _UNTOUCHED and name not in namespace:
            self.ctx.throw(NameError, f"name '{name}' is not defined", name=name)
        if key not in self.written_globals and namespace.get(name) is not getattr(value, "real", _UNTOUCHED):
            self.let_go(None, [namespace.get(name)])
            self.ctx.guards.add(Injected(namespace), GuardKind.EXPRESSION, without_finaliser(name))
        self.alive.append(namespace)
        self.events[1] += 1
        self.globals[key] = value
        self.written_globals[key] = (namespace, name)
