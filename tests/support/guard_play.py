"""Play a guard scenario in two equal worlds, eager in one and compiled in the other, and compare all there is."""

import collections
import types
from dataclasses import dataclass, field
from typing import Any

import torch

from plumbline.compiler.base.events import Captured, CompilerFailed, RanEagerly, Recompiled, recording
from plumbline.fuzz.guard_scenarios.guard_slots import CALL, SLOTS
from plumbline.fuzz.guard_scenarios.scenarios import Scenario
from plumbline.fuzz.guard_scenarios.torch_slots import put_back
from support.programs import compiled

_ARGUMENTS = CALL.replace("step(", "(", 1)
_UNSEEN = frozenset({"__builtins__", "__name__", "__warningregistry__"})


@dataclass
class Played:
    """What a history came to. wrong: answers or states that differ. compilations: per call, how many."""

    wrong: list[str] = field(default_factory=list)
    compilations: list[int] = field(default_factory=list)
    graphs: int = 0
    states: list[tuple[int, ...]] = field(default_factory=list)
    read: list[tuple[int, ...]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


def play(scenario: Scenario, **settings: Any) -> Played:
    """Play the events; torch's global state is as before afterwards."""
    eager, other = scenario.namespace(), scenario.namespace()
    run = compiled(other["step"], **settings)
    values = {slot.name: 0 for slot in scenario.slots}
    bases = {SLOTS[slot.name].needs for slot in scenario.slots if slot.way >= 0} - {""}
    touched = {*scenario.read, *(name for name in values if SLOTS[name].needs in bases)}  # what is read shares objects
    played = Played()
    try:
        for number, event in enumerate(scenario.events):
            if event.slot:
                if _change(event.text, eager) and _change(event.text, other):
                    values[event.slot] = event.value
                continue
            _call(eager, other, run, f"call at event {number}", played)
            played.states.append(tuple(values.values()))
            played.read.append(tuple(values[name] for name in touched if name in values))
    finally:
        put_back()
    return played


def _change(text: str, namespace: dict[str, Any]) -> bool:
    """Make a change; return False where torch refuses it in the state that other slots have made."""
    try:
        exec(text, namespace)
    except RuntimeError:
        return False
    return True


def _call(eager: dict[str, Any], other: dict[str, Any], run: Any, what: str, played: Played) -> None:
    generator = torch.get_rng_state()
    expected = _outcome(eager["step"], eager)
    torch.set_rng_state(generator)
    with recording() as events:
        actual = _outcome(run, other)
    played.wrong += [f"{what}: {e.stage} failed: {e.error}" for e in events if isinstance(e, CompilerFailed)]
    if actual != expected:
        played.wrong.append(f"{what}: {_difference(expected, actual)}")
    played.compilations.append(sum(isinstance(event, Recompiled | Captured) for event in events))
    played.graphs += sum(isinstance(event, Captured) for event in events)
    played.reasons += [f"{e.reason}: {e.what}" for e in events if isinstance(e, RanEagerly)]
    played.reasons += [f"recompiled: {e.guard}, found {e.actual}" for e in events if isinstance(e, Recompiled)]


def _outcome(function: Any, namespace: dict[str, Any]) -> Any:
    try:
        result: Any = ("returns", function(*eval(_ARGUMENTS, namespace)))
    except Exception as error:
        result = ("raises", type(error).__name__)
    places = {name: value for name, value in namespace.items() if name not in _UNSEEN}
    return Picture().of((result, places, torch.rand(1), torch.is_grad_enabled(), torch.get_default_dtype()))


def _difference(left: Any, right: Any, path: str = "") -> str:
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        for place, (a, b) in enumerate(zip(left, right, strict=True)):
            if a != b:
                return _difference(a, b, f"{path}.{place}")
    return f"{path}: {str(left)[:300]} became {str(right)[:300]}"


class Picture:
    """Draws values as nested tuples that are equal where types (by name), contents and sharing are."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self.alive: list[Any] = []

    def of(self, value: Any) -> Any:
        """Return the picture."""
        if isinstance(value, (str, bytes, int, float, complex, type(None), torch.dtype, torch.device, type(...))):
            return (type(value).__name__, repr(value))
        if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType) and not _is_own(value):
            return ("named", getattr(value, "__name__", ""))
        if not isinstance(value, tuple | frozenset | torch.Size):
            if id(value) in self.seen:
                return ("again", self.seen[id(value)])
            self.seen[id(value)] = len(self.seen)
            self.alive.append(value)
        return (type(value).__name__, self._contents(value))

    def _contents(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, types.FunctionType):
            cells = tuple(self.of(cell.cell_contents) for cell in value.__closure__ or ())
            return (
                value.__code__.co_name,
                self.of(value.__defaults__),
                self.of(value.__kwdefaults__),
                cells,
                self.of(value.__dict__),
            )
        if isinstance(value, dict | collections.OrderedDict | types.MappingProxyType):
            items = tuple((self.of(key), self.of(item)) for key, item in value.items())
            return (items, self._attributes(value))
        if isinstance(value, list | tuple | collections.deque):
            return (*(self.of(item) for item in value), self._attributes(value))
        if isinstance(value, set | frozenset):
            return tuple(sorted(repr(item) for item in value))
        if isinstance(value, type):
            own = {name: item for name, item in vars(value).items() if not name.startswith("__") or callable(item)}
            return (value.__name__, tuple(base.__name__ for base in value.__mro__), self.of(own))
        return self._attributes(value)

    def _attributes(self, value: Any) -> Any:
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if name[:2] != "__"]
        held = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        namespace = getattr(value, "__dict__", None)
        if isinstance(namespace, dict):
            held |= {name: item for name, item in namespace.items() if name != "__warningregistry__"}
        return tuple((name, self.of(item)) for name, item in sorted(held.items()))

    def _tensor(self, value: torch.Tensor) -> Any:
        plain = value.layout is torch.strided and value.device.type == "cpu"
        numbers = repr(value.detach().resolve_conj().resolve_neg().tolist()) if plain else ""
        strides = value.stride() if plain else ()
        grad = self.of(value.grad) if value.is_leaf else None
        return (
            str(value.dtype),
            str(value.device),
            tuple(value.shape),
            strides,
            value.requires_grad,
            value.is_leaf,
            numbers,
            grad,
            self.of(value.__dict__),
        )


def _is_own(value: Any) -> bool:
    return (
        isinstance(value, type)
        and value.__module__ in ("builtins", "__main__", "program")
        and bool(value.__flags__ & (1 << 9))
    )
