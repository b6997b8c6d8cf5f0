"""Applications: what the compiler did, counted one by one, so that each can be switched off (`options.bisect`).

A stage asks its gate before it does something that it could leave out.  Without the option there is no gate (None),
and nobody counts.  A number is given to each site the first time that it is asked for: the n-th application of its
kind since the process or the innermost `counting()` block began, or since `plumbline.reset()`.  A site is the kind, the
graph and what happens there, so that it keeps its key where others are switched off, while numbers behind those may
move.
"""

import inspect
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from ..events import Event, record
from ..locks import ForkedLock
from .switches import KINDS, Switches, read_switches

_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Application(Event):
    """One application on record.

    number: among those of its kind, from 0.  key: eight hexadecimal digits that stay the same where others are off.
    what: in words.  rule: what decided it (an operator, a pass), to group by.  where: the file of the compiler.
    place: the user's `file:line`, or empty.  on: whether it happened.
    """

    kind: str
    number: int
    key: str
    what: str
    rule: str
    where: str
    place: str
    on: bool

    def text(self) -> str:
        """Return one line: number, what, the file that decided it and the user's line."""
        return f"{self.kind} {self.number}: {self.what} ({self.where})" + (f", from {self.place}" if self.place else "")


@dataclass(slots=True)
class _Ledger:
    """The numbers given so far.  numbers: by kind and key.  graphs: how many there are of each name."""

    numbers: dict[str, dict[str, int]] = field(default_factory=dict)
    graphs: dict[str, int] = field(default_factory=dict)
    lock: ForkedLock = field(default_factory=ForkedLock)

    def number(self, kind: str, key: str) -> int:
        with self.lock:
            known = self.numbers.setdefault(kind, {})
            return known.setdefault(key, len(known))

    def restart(self) -> None:
        with self.lock:
            self.numbers.clear()
            self.graphs.clear()

    def graph(self, name: str) -> str:
        with self.lock:
            count = self.graphs[name] = self.graphs.get(name, 0) + 1
            return f"{name} {count - 1}"


_LEDGERS = [_Ledger()]


@contextmanager
def counting() -> Iterator[None]:
    """Count from zero inside the block."""
    ledger = _Ledger()
    _LEDGERS.append(ledger)
    try:
        yield
    finally:
        _LEDGERS.remove(ledger)


def count_anew() -> None:
    """Count from zero from now on."""
    _LEDGERS[-1].restart()


class Gate:
    """What the stages of one graph ask; a second gate for the same graph gives the same answers."""

    __slots__ = ("_asked", "_ledger", "_switches", "graph")

    def __init__(self, graph: str, switches: Switches, ledger: _Ledger) -> None:
        self.graph = graph
        self._switches = switches
        self._ledger = ledger
        self._asked: dict[str, int] = {}

    def again(self) -> "Gate":
        """Return a gate that answers a second walk over the same graph as this one answered the first."""
        return Gate(self.graph, self._switches, self._ledger)

    def allows(self, kind: str, what: str, *, rule: str = "", where: str = "", place: str = "") -> bool:
        """Return whether an application may happen, and put it on record.

        what, rule, place: as in `Application`.  where: the file that decides, if it is not the one of the kind.
        """
        site = f"{kind} {self.graph} {what}"
        count = self._asked[site] = self._asked.get(site, 0) + 1
        key = blake2b(f"{site} {count}".encode(), digest_size=4).hexdigest()
        number = self._ledger.number(kind, key)
        on = self._switches.allows(kind, number, key, rule or what)
        file = where or f"compiler/{KINDS[kind].file}"
        record(Application(kind, number, key, what, rule or what, file, place, on))
        return on


def gate_for(switches: str, graph: str) -> Gate | None:
    """Return the gate of the next graph of a name; None where nobody bisects.  switches: the option `bisect`."""
    if not switches:
        return None
    ledger = _LEDGERS[-1]
    return Gate(ledger.graph(graph), read_switches(switches), ledger)


def place_of_code(function: object) -> str:
    """Return `file:line` of a function, from the compiler's folder on where it is the compiler's; empty if unknown."""
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    if code is None:
        return ""
    file = Path(code.co_filename)
    inside = file.resolve().is_relative_to(_ROOT)
    return f"{file.resolve().relative_to(_ROOT.parent) if inside else file.name}:{code.co_firstlineno}"


def numbered(events: Iterable[Event]) -> list[Application]:
    """Return the applications among some events, each once, by kind in pipeline order and by number."""
    found = {(event.kind, event.key): event for event in events if isinstance(event, Application)}
    order = {name: place for place, name in enumerate(KINDS)}
    return sorted(found.values(), key=lambda each: (order[each.kind], each.number))
