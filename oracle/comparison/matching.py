"""The descriptions of two runs side by side: every place that eager or the compiled program left behind, in order.

Children of a place are matched when both sides have an object of the same kind there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch

from ..state.description import Node
from ..state.run_outcome import RunOutcome
from ..state.tensor_records import TensorRecord
from ..verdict import VerdictKind

_STEPS_OF_ROUNDING = 4
"""Units in the last place by which a tensor that only one run changed may have moved, to be judged as rounding."""

BEFORE_ALL, AFTER_ALL = -1, 1 << 62
"""Positions of differences that belong to no place."""


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """One place in two outcomes; None on a side that has nothing there.

    position: number of the place, in eager's order.  part: the aspect that values belong to at this place: `values`
    in the output, `mutations` in tensors and arrays that existed before the call, `python` in any other state.
    binding: the place is a global name.
    """

    position: int
    part: str
    path: str
    eager: Node | None
    actual: Node | None
    binding: bool = False

    @property
    def kind(self) -> str | None:
        """Return the kind of object that both sides have here, None when they differ in kind or class."""
        eager, actual = self.eager, self.actual
        if eager is None or actual is None or eager.kind != actual.kind:
            return None
        return eager.kind if eager.type_name == actual.type_name or eager.kind == "tensor" else None


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference, in words.

    position: of the place, BEFORE_ALL or AFTER_ALL.  where: path as the user would write it.
    may_round: a number that code without any tensor can round otherwise.
    """

    position: int
    where: str
    sentence: str
    kind: VerdictKind = VerdictKind.WRONG
    may_round: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class MatchedOutcomes:
    """Two outcomes of one call from one state, and their places side by side."""

    eager: RunOutcome
    actual: RunOutcome
    matches: tuple[Match, ...]


def match_outcomes(eager: RunOutcome, actual: RunOutcome) -> MatchedOutcomes:
    """Match two outcomes: outputs first, then changed objects, then global names."""
    matcher = _Matcher()
    if eager.error is None and actual.error is None and eager.output is not None and actual.output is not None:
        matcher.add("values", eager.output.path, eager.output, actual.output)
    matcher.add_changed(
        _with_what_rounding_left(eager, actual.changed), _with_what_rounding_left(actual, eager.changed)
    )
    matcher.add_bindings(eager.bindings, actual.bindings)
    return MatchedOutcomes(eager, actual, tuple(matcher.matches))


def _with_what_rounding_left(outcome: RunOutcome, others: Mapping[str, Node]) -> Mapping[str, Node]:
    """Return what a run changed, and the tensors that rounding may have kept as they were.

    A step of a moving average is lost where it is smaller than half a unit in the last place.  Those numbers are judged
    like any others; whatever else a write changes (a history, a form) is not to be explained so.
    """
    found = dict(outcome.changed)
    for path, node in others.items():
        if (
            node.kind == "tensor"
            and path not in found
            and (record := _unchanged(outcome, path, node.value)) is not None
        ):
            found[path] = replace(node, value=record)
    return {path: found[path] for path in dict.fromkeys([*others, *found]) if path in found}


def _unchanged(outcome: RunOutcome, path: str, record: TensorRecord) -> TensorRecord | None:
    before = outcome.before(path)
    if before is None or not record.dtype.is_floating_point or record.history or record.facts:
        return None
    if (before.dtype, before.shape, before.requires_grad) != (record.dtype, record.value.shape, record.requires_grad):
        return None
    slack = _STEPS_OF_ROUNDING * torch.finfo(record.dtype).eps
    near = torch.allclose(record.value.double(), before.detach().double(), rtol=slack, atol=0, equal_nan=True)
    return replace(record, value=before.detach().clone()) if near else None


class _Matcher:
    """Numbers places in the order of the visit."""

    def __init__(self) -> None:
        self.matches: list[Match] = []

    def add(self, part: str, path: str, eager: Node | None, actual: Node | None, *, binding: bool = False) -> None:
        match = Match(len(self.matches), part, path, eager, actual, binding)
        self.matches.append(match)
        if eager is not None and actual is not None and match.kind is not None:
            for name in common_names(eager, actual):
                self.add(part, name, eager.children[name], actual.children[name])

    def add_changed(self, eager: Mapping[str, Node], actual: Mapping[str, Node]) -> None:
        for path in dict.fromkeys([*eager, *actual]):
            node = eager.get(path) or actual[path]
            part = "mutations" if node.kind in ("tensor", "array", "buffer") else "python"
            self.add(part, path, eager.get(path), actual.get(path))

    def add_bindings(self, eager: Mapping[str, Node], actual: Mapping[str, Node]) -> None:
        for path in sorted(eager.keys() | actual.keys()):
            self.add("python", path, eager.get(path), actual.get(path), binding=True)


def common_names(eager: Node, actual: Node) -> Iterator[str]:
    """Yield the children that both nodes have, always in eager's order."""
    return (name for name in eager.children if name in actual.children)
