"""Results of earlier calls that a later call must leave alone: a compiler may use their memory again too early.

A result is watched as long as its user holds it.  A call may change it only through what the call can reach.
"""

import collections
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from ..numeric.bits import equal_bits
from ..state.children import children_of
from ..state.kinds import kind_of
from ..state.saved_tensors import has_storage, is_freed
from ..state.walk import Walk
from ..user_overrides import without_overrides
from ..verdict import Finding, VerdictKind

MOST_RESULTS = 16
"""Results held in view; those of a loop that keeps none are gone at once."""

MOST_BYTES = 1 << 22
"""Bytes of earlier results that are copied before a call, the latest first."""

_MUTABLE = ("list", "dict", "set", "deque", "buffer", "array", "object")
_MOST_OBJECTS = 2_000


class JudgesReference(weakref.ref[Any]):
    """A weak reference of the judge's own.

    The plain one of an object is the same for everybody, so that a compiler would take it for the program's, and keep
    to the moment at which the object ends.
    """

    __slots__ = ()


@dataclass(slots=True, eq=False)
class WatchedTensor:
    """A tensor of an earlier result, and its numbers before the call."""

    tensor: torch.Tensor
    before: torch.Tensor

    def changed(self) -> bool:
        """Return whether it holds other numbers now."""
        return is_freed(self.tensor) or not equal_bits(self.tensor.detach(), self.before)


@dataclass(slots=True, eq=False)
class EarlierResults:
    """The results of the calls of one boundary that somebody still holds."""

    tensors: "collections.deque[JudgesReference]" = field(
        default_factory=lambda: collections.deque(maxlen=MOST_RESULTS)
    )

    holders: "collections.deque[JudgesReference]" = field(
        default_factory=lambda: collections.deque(maxlen=MOST_RESULTS)
    )

    def note(self, result: object) -> None:
        """Watch a result from now on."""
        for kind, part in _parts(result):
            if kind == "tensor":
                self.tensors.append(JudgesReference(part))
            elif kind == "object" and type(part).__weakrefoffset__:
                self.holders.append(JudgesReference(part))

    def containers(self) -> set[int]:
        """Return the identities of what objects in earlier results hold and a program could change."""
        alive = [holder for reference in self.holders if (holder := reference()) is not None]
        return {id(part) for holder in alive for kind, part in _parts(holder) if kind in _MUTABLE}

    def watch(self, reached: Walk) -> list[WatchedTensor]:
        """Return those that the coming call cannot reach, with copies of their numbers."""
        held = [tensor for reference in self.tensors if (tensor := reference()) is not None]
        if not held:
            return []
        memory = {_memory_of(visit.value) for visit in reached.visits if visit.kind == "tensor"}
        watched, room = [], MOST_BYTES
        for tensor in reversed(held):
            room -= tensor.numel() * tensor.element_size()
            if room < 0:
                break
            if _plain(tensor) and _memory_of(tensor) not in memory:
                with without_overrides():
                    watched.append(WatchedTensor(tensor, tensor.detach().clone()))
        return watched


def leave_to_eager(watched: list[WatchedTensor]) -> None:
    """Watch no longer what has changed already, before compiled code ran: a cache that nobody can look into."""
    with without_overrides():
        watched[:] = [each for each in watched if not each.changed()]


def parts_among(result: object, identities: set[int]) -> set[int]:
    """Return the identities of the parts of a result that are among these."""
    return {id(part) for _, part in _parts(result)} & identities if identities else set()


def handed_out_again(identities: set[int], reached: Walk) -> list[Finding]:
    """Return a finding if a result consists of objects of an earlier one, and these are not the program's own."""
    left = identities - {id(visit.value) for visit in reached.visits}
    sentence = f"has {len(left)} objects in common with the result of an earlier call; eager makes new ones"
    return [Finding(VerdictKind.WRONG, "aliasing", "the output", sentence)] if left else []


def overwritten(watched: list[WatchedTensor]) -> list[Finding]:
    """Return a finding for each watched tensor whose numbers the call has changed."""
    sentence = "is overwritten by this one"
    with without_overrides():
        changed = [each for each in watched if each.changed()]
    return [Finding(VerdictKind.WRONG, "aliasing", "the result of an earlier call", sentence) for _ in changed]


def _plain(tensor: torch.Tensor) -> bool:
    return has_storage(tensor) and not is_freed(tensor) and type(tensor) in (torch.Tensor, torch.nn.Parameter)


def _memory_of(tensor: torch.Tensor) -> int | None:
    return tensor.untyped_storage()._cdata if has_storage(tensor) else None


def _parts(result: object) -> Iterator[tuple[str, Any]]:
    """Yield what a result holds, with its kinds: containers, their items, objects with their attributes."""
    stack: list[object] = [result]
    seen: set[int] = set()
    while stack and len(seen) < _MOST_OBJECTS:
        part = stack.pop()
        kind = kind_of(part)
        if kind in ("atom", "closed", "forward-only", "function", "class", "method") or id(part) in seen:
            continue
        seen.add(id(part))
        yield kind, part
        if kind != "tensor":
            stack.extend(child for _, child in children_of("", kind, part))
