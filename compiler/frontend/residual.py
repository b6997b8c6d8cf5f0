"""The Python that runs at a call: check the guards, fetch the inputs, run the graph, rebuild values, replay effects."""

from collections.abc import Mapping

import torch

from ..base.symbol_facts import size_expression
from ..base.torch_facts import set_grad_mode
from ..values.constant import Known
from ..values.guard import Guard, GuardKind
from ..values.library.objects_by_content import KnownByContent
from ..values.python.containers.mappings import DictValue
from ..values.python.containers.tuples import TupleValue
from ..values.python.objects.attributes import CAPTURED_CLASSES, leads_to_template
from ..values.reasons import CANNOT_REBUILD, FUNCTION_TRANSFORM, Break
from ..values.scalar import SizeValue
from ..values.source import Injected, Source
from ..values.torch.tensor import TensorValue
from ..values.value import Rebuilder, Value
from .context.autocast import autocast_state, enter_autocast
from .context.lazy import LazyValue
from .context.recorder import Recorder
from .guards.generated_function import Names


class _MadeOfItself(Exception):
    """A class is to be made of something that it is a part of itself: it has to be there first."""


EAGER = type("Eager", (), {"__repr__": lambda self: "EAGER"})()


class Residual(Rebuilder):
    """Writes the statements after the guards; before: those that stand in front of the graph."""

    def __init__(self, recorder: Recorder, names: Names, before: list[str]) -> None:
        self.recorder = recorder
        self.names = names
        self.before = before
        self.lines: list[str] = []
        self.known: dict[int, str] = {}
        self.alive: list[Value] = []
        self.outputs: list[TensorValue] = []
        self.unmade: list[Value] = []  # classes whose parts are being made
        self.unfilled: list[tuple[str, Value]] = []  # places for what is made of one of those

    def value(self, value: Value) -> str:
        """Return an expression for the value."""
        if isinstance(value, LazyValue):
            if value.inner is None:
                assert value.source is not None
                return self.fetch(value.source)
            value = value.inner
        name = self.known.get(id(value))
        if name is None:
            if any(value is one for one in self.unmade):
                raise _MadeOfItself
            if value.source is not None:
                name = self.fetch(value.source)
            elif value.holder is not None:
                name = self.value(value.holder)
            else:
                if isinstance(value, Known):
                    _demand_no_template(value.value)
                name = value.rebuild(self)
                name = self.known.get(id(value), name)  # one of its parts holds it, and has made it of those parts
            self.bind(value, name)
        return name

    def inject(self, value: object) -> str:
        """Give a constant object a name."""
        _demand_no_template(value)
        return self.names.inject(value)

    def line(self, text: str) -> None:
        """Write one statement."""
        self.lines.append(text)

    def fresh(self) -> str:
        """Return an unused name."""
        return self.names.fresh()

    def class_name(self, kind: type) -> str:
        """Return an expression for a class; one that was made while capturing is made again by its class statement."""
        template = CAPTURED_CLASSES.get(kind)
        return self.inject(kind) if template is None else self.value(template)

    def name_of(self, value: Value) -> str | None:
        """Return the name under which a value is there, None if it has not been made."""
        return self.known.get(id(value))

    def bind(self, value: Value, name: str) -> None:
        """Remember the name of a value."""
        self.known[id(value)] = name
        self.alive.append(value)
        if self.unmade and self.unmade[-1] is value:
            self.unmade.pop()
            places, self.unfilled = self.unfilled, []
            for place, content in places:
                self.fill(place, content)

    def fill(self, place: str, value: Value) -> None:
        """Assign to a place of an object that is there; later, where the value is made of a class not made yet."""
        text = self._unless_unmade(value)
        if text is None:
            self.unfilled.append((place, value))
        else:
            self.line(f"{place} = {text}")

    def _unless_unmade(self, value: Value) -> str | None:
        """Return an expression for a value; None where a class is among its parts that is not made yet."""
        if not self.unmade:
            return self.value(value)
        known, unmade, unfilled = dict(self.known), len(self.unmade), len(self.unfilled)
        try:
            return self.value(value)
        except _MadeOfItself:  # what is made of it so far is dropped, and made anew
            self.known = known
            del self.unmade[unmade:], self.unfilled[unfilled:]
            return None

    def class_parts(self, kind: Value, parts: Mapping[str, Value]) -> dict[str, str]:
        """Return expressions for parts of a class that is to be made; those are left out that it is a part of."""
        self.unmade.append(kind)
        texts = {name: self._unless_unmade(part) for name, part in parts.items()}
        return {name: text for name, text in texts.items() if text is not None}

    def tensor(self, value: Value) -> str:
        """Return the name of a graph output."""
        assert isinstance(value, TensorValue)
        if value.node.graph is not self.recorder.graph.fx:
            raise Break(FUNCTION_TRANSFORM, "a tensor that has left the transform it was made under")
        self.outputs.append(value)
        return f"_o{len(self.outputs) - 1}"

    def size(self, value: Value) -> str:
        """Return an expression over the sizes of inputs, which are read before the graph can change them."""
        assert isinstance(value, SizeValue)
        text, sources = self.recorder.sizes.text(size_expression(value.symbol))
        name = self.fresh()
        kind = "float" if value.kind is float else ""  # what is known by now may have made a whole number of it
        inputs = (self.names.fetch(source, self.before) for source in sources)
        self.before.append(f"{name} = {kind}({text.format('', *inputs)})")
        return name

    def fetch(self, source: Source) -> str:
        """Return the name of what a source gave."""
        if isinstance(source, Injected):
            _demand_no_template(source.value)
        return self.names.fetch(source, self.lines)

    def replay_effects(self) -> None:
        """Write the stores that make outside objects look as the program left them.

        Everything the stores need is built before the first of them, so that no store is seen by a fetch.
        """
        stores: list[str] = []
        for (_, name), value in self.recorder.effects.globals.items():
            place = self.recorder.effects.written_globals.get((_, name))
            if place is None:
                continue
            namespace = self.inject(place[0])
            if value is None:
                stores.append(f"{namespace}.pop({name!r}, None)")
            else:
                stores.append(f"{namespace}[{name!r}] = {self.value(value)}")
        for effect in self.recorder.effects.changed:
            stores += effect.replay(self)
        self.lines += stores
        self.lines += [write(self) for write in self.recorder.effects.counted]

    def restore_state(self) -> None:
        """Leave the global state of torch as the captured code left it."""
        recorder = self.recorder
        if "autocast" in recorder.modes.changed and recorder.modes.autocast_changed():
            state = f"{self.inject(autocast_state())}, {recorder.modes.autocast_blocks()}"
            self.line(f"{self.inject(enter_autocast)}({state})")
        recorder.modes.blocks.write(self)
        if "grad" in recorder.modes.changed:
            self.line(f"{self.inject(set_grad_mode)}({torch.is_grad_enabled()})")


def _demand_no_template(value: object) -> None:
    """Raise Break for an object that would hand over a class that only stands for one that is to be made."""
    if CAPTURED_CLASSES and leads_to_template(value):
        raise Break(CANNOT_REBUILD, f"a {type(value).__qualname__} of a class made while capturing")


def distinct_guards(recorder: Recorder) -> list[Guard]:
    """Return the guards on aliasing that the capture relied on.

    Distinct inputs matter if something reachable from outside is changed: a list, an object, a tensor's data.
    """
    guards: list[Guard] = []
    if recorder.effects.changed:
        changeable = [value for value in recorder.shared.values() if not _is_part(value)]
        sources = [value.source for value in changeable if value.source is not None]
        outside = tuple(source for source in sources if not _is_fixed(source))
        if len(outside) > 1:
            guards.append(Guard(None, GuardKind.DISTINCT, "distinct", None, outside))
    hashed = tuple(value.source for value in recorder.guards.hashed.values() if value.source is not None)
    if len(hashed) > 1 and not all(map(_is_fixed, hashed)):
        guards.append(Guard(None, GuardKind.DISTINCT, "distinct", None, hashed))
    if recorder.graph.mutates_inputs and len(recorder.graph.input_values) > 1:
        tensors = tuple(value.source for value in recorder.graph.input_values if value.source is not None)
        if not recorder.effects.changed:
            guards.append(Guard(None, GuardKind.DISTINCT, "distinct", None, tensors))
        pattern = recorder.graph.storage_pattern()
        guards.append(Guard(None, GuardKind.STORAGES, pattern, None, tensors))
    return guards


def _is_part(value: Value) -> bool:
    """Return whether a value never changes, or is the `__dict__` of an object that stands for it."""
    return isinstance(value, TupleValue | KnownByContent) or (isinstance(value, DictValue) and not value.ordered)


def _is_fixed(source: Source) -> bool:
    return isinstance(source, Injected)
