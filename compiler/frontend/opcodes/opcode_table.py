"""The registry of opcode rules, by name and version range; the test of completeness reads it."""

from collections.abc import Callable

from ...bytecode.instruction import Instruction
from ...bytecode.versions import RUNNING
from ..context.frame import FrameState

Rule = Callable[[FrameState, Instruction], None]
Version = tuple[int, int]

_ALL: dict[str, list[tuple[Version, Version, Rule]]] = {}


def opcode(name: str, first: Version = (3, 11), last: Version = (3, 13)) -> Callable[[Rule], Rule]:
    """Register the rule of an opcode for the versions first..last."""

    def register(rule: Rule) -> Rule:
        rows = _ALL.setdefault(name, [])
        for low, high, _ in rows:
            assert last < low or first > high, f"two rules for {name}"
        rows.append((first, last, rule))
        return rule

    return register


def rules_for(version: Version = RUNNING) -> dict[str, Rule]:
    """Return the rules that hold for a version of Python."""
    rules: dict[str, Rule] = {}
    for name, rows in _ALL.items():
        for first, last, rule in rows:
            if first <= version <= last:
                rules[name] = rule
    return rules
