"""The grammar of programs as tables of text: productions with typed holes, and features that bring their own.

A hole is `<kind>`: an expression of that kind.  `<=kind>` is a variable that is assigned, new or known; `<+kind>` one
that is always new; `<$kind>` a known variable.  `<body>` on its own line is a block, `<function>` the block of a nested
function.  Kinds that have no productions of their own are in `CONSTANTS`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

HOLE = re.compile(r"<([=+$]?)([a-z_]+)>")
BLOCK_HOLES = frozenset({"body", "function"})

CONSTANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "k": ("0", "1", "2", "3", "4"),
        "f": ("0.5", "2.0", "-1.5", "1.0", "0.25"),
        "w": ("'a'", "'b'", "'cd'", "''", "'a b'"),
        "key": ("'a'", "'b'", "'c'"),
    }
)
"""Kind -> the literals that it stands for."""


@dataclass(frozen=True, slots=True)
class Production:
    """One way to write something: its text with holes, and the feature that it belongs to."""

    text: str
    feature: str


@dataclass(frozen=True, slots=True)
class Feature:
    """A part of the language or a library that a program may use.

    setup: definitions at the top of the module.  expressions: one line each, `kind: text`.
    statements: separated by blank lines; `loop:`, `handler:` and `coroutine:` restrict where one may stand.
    variables: names of the setup by kind.  changes: statements between two calls, one per line.
    """

    name: str
    setup: str = ""
    expressions: str = ""
    statements: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    changes: str = ""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The productions of some features by kind; statements under `statement` or the place that they need."""

    productions: Mapping[str, tuple[Production, ...]]

    def of(self, kind: str) -> tuple[Production, ...]:
        """Return the productions of a kind, none for one that only variables and constants have."""
        return self.productions.get(kind, ())


def grammar_of(features: tuple[Feature, ...]) -> Grammar:
    """Return the grammar of all these features together."""
    table: dict[str, list[Production]] = {}
    for feature in features:
        for line in _lines(feature.expressions):
            kind, _, text = line.partition(": ")
            table.setdefault(kind, []).append(Production(text, feature.name))
        for place, text in statements_of(feature):
            table.setdefault(place, []).append(Production(text, feature.name))
    return Grammar({kind: tuple(productions) for kind, productions in table.items()})


PLACES = ("loop", "handler")


def statements_of(feature: Feature) -> list[tuple[str, str]]:
    """Return the statements of a feature, each with the place where it may stand."""
    found = []
    for block in re.split(r"\n\s*\n", feature.statements.strip("\n")):
        if not block.strip():
            continue
        first = block.split("\n", 1)[0]
        place = next((one for one in PLACES if first == f"{one}:"), "")
        found.append((place or "statement", block.split("\n", 1)[1] if place else block))
    return found


def changes_of(feature: Feature) -> list[str]:
    """Return the changes that a history may make between two calls."""
    return _lines(feature.changes)


def _lines(text: str) -> list[str]:
    return [line for line in text.strip("\n").splitlines() if line.strip()]
