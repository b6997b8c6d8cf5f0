"""Objects described by value, so that what two runs left behind can be compared.

Objects that existed before the call are identified by their number in the snapshot, so identity and sharing are
visible.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from ..user_overrides import with_overrides
from .argument_stand_ins import StandIns
from .children import described_parts, shown_parts
from .kinds import kind_of, place_of_count
from .saved_objects import generator_digest
from .saved_tensors import as_bytes
from .snapshot import Snapshot
from .tensor_records import TensorRecord, TensorRecorder, owner_of

MOST_YIELDED = 64
"""Items of an iterator that are looked at, where a run's result may be used up."""

DEEPEST = 60
"""Levels of nesting described; deeper ones are opaque."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One object described: an atom by value, a tensor by record, a container by its children.

    identity: number of the object; negative for those that existed before the call.  again: described before.
    source: of an array, the tensor that it shows whole.
    """

    kind: str
    path: str
    type_name: str
    identity: int | None = None
    value: Any = None
    children: Mapping[str, "Node"] = field(default_factory=dict)
    again: bool = False
    source: torch.Tensor | None = None

    def sources(self) -> "dict[str, torch.Tensor]":
        """Return the tensors that arrays in this tree are views of, by path."""
        found = {self.path: self.source} if self.source is not None else {}
        for child in self.children.values():
            found |= child.sources()
        return found

    def tensors(self) -> "list[Node]":
        """Return every node of a tensor in this tree, in order."""
        nodes = [self] if self.kind == "tensor" and not self.again else []
        for child in self.children.values():
            nodes.extend(child.tensors())
        return nodes

    def by_path(self) -> dict[str, TensorRecord]:
        """Return the records of the tensors in this tree by path."""
        return {node.path: node.value for node in self.tensors()}


def _ranges(snapshot: Snapshot, stand_ins: StandIns, known: Mapping[int, int]) -> dict[range, int]:
    """Return the addresses of memory that existed before the call, with its numbers: storages first, then arrays.

    A stand-in's memory has the number of what it replaces.
    """
    every = [saved.storage for saved in snapshot.storages.values()]
    every += [pair.passed.untyped_storage() for pair in stand_ins.pairs]
    storages = [(one, known[one._cdata]) for one in every if one.nbytes() and one._cdata in known]
    ranges = {range(one.data_ptr(), one.data_ptr() + one.nbytes()): number for one, number in storages}
    for number, array in enumerate(snapshot.arrays):
        start = _address_of(array)
        ranges.setdefault(range(start, start + array.nbytes), -1 - len(snapshot.storages) - number)
    return ranges


def _address_of(array: numpy.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _source_of(array: numpy.ndarray) -> torch.Tensor | None:
    """Return the tensor that an array shows whole; torch leaves it as the array's base."""
    base: object = array.base
    if not isinstance(base, torch.Tensor) or tuple(base.shape) != array.shape:
        return None
    return base.detach() if base.data_ptr() == _address_of(array) else None


class Describer:
    """Describes objects of one run; numbers new objects and storages in the order of the visit.

    uses_up: iterators in the output may be run to their ends.
    """

    def __init__(self, snapshot: Snapshot, stand_ins: StandIns, *, uses_up: bool = False) -> None:
        self.snapshot = snapshot
        self.stand_ins = stand_ins
        self.uses_up = uses_up
        self.has_used_up = False
        self.numbers: dict[int, int] = {}
        self.described: set[int] = set()
        self.records: dict[int, TensorRecord] = {}
        known = {key: -1 - number for number, key in enumerate(snapshot.storages)}
        for pair in stand_ins.pairs:  # a stand-in's memory counts as that of the tensor it replaces
            before = known.get(pair.original.untyped_storage()._cdata)
            if before is not None:
                known[pair.passed.untyped_storage()._cdata] = before
        self.ranges = _ranges(snapshot, stand_ins, known)
        self.tensors = TensorRecorder(known, self.ranges if snapshot.arrays else {})
        self.alive: list[object] = []  # described objects must stay alive: identities would be reused

    def describe(self, path: str, value: Any, depth: int = 0, *, inside: bool = False) -> Node:
        """Describe one object; `inside` opens an object that existed before the call."""
        kind = kind_of(value)
        type_name = f"{type(value).__module__}.{type(value).__qualname__}"
        if kind == "atom":
            return Node(kind, path, type_name, value=value)
        self.alive.append(value)
        identity = self._number(value)
        again = id(value) in self.described
        if kind == "tensor" and value.is_nested:
            nodes = [self.describe(f"{path}[{n}]", part, depth + 1) for n, part in enumerate(value.unbind())]
            return Node("nested", path, type_name, identity, children={node.path: node for node in nodes})
        if kind == "tensor":
            self.described.add(id(value))
            if not again:
                self.records[id(value)] = self.tensors.record(value)
            gradient = value.grad if identity >= 0 and not again and value.is_leaf else None
            held = {} if gradient is None else {f"{path}.grad": self.describe(f"{path}.grad", gradient, depth + 1)}
            return Node(kind, path, type_name, identity, self.records[id(value)], held, again=again)
        if again and not inside and kind != "tuple":  # which of two equal tuples it is, Python does not promise
            return Node(kind, path, type_name, identity, again=True)
        if kind == "generator":
            state = Node("atom", f"state of {path}", "builtins.str", value=generator_digest(value))
            return Node(kind, path, type_name, identity, children={state.path: state})
        if kind == "forward-only" and identity >= 0 and path.startswith("output") and hasattr(value, "__next__"):
            return self._iterator(path, type_name, identity, value, depth)
        place = place_of_count(value) if kind == "forward-only" else None
        if place is not None:
            told = Node("atom", f"place of {path}", "builtins.str", value=place)
            return Node(kind, path, type_name, identity, children={told.path: told})
        shown = (
            shown_parts(path, value) if kind in ("closed", "object") and identity >= 0 and depth <= DEEPEST else None
        )
        if shown is not None:
            self.described.add(id(value))
            children = {name: self.describe(name, part, depth + 1) for name, part in shown}
            return Node("shown", path, type_name, identity, children=children)
        if kind in ("closed", "forward-only") or depth > DEEPEST or (kind == "class" and not inside):
            return Node("opaque", path, type_name, identity)
        if kind == "storage":
            memory = value.untyped() if isinstance(value, torch.TypedStorage) else value  # type: ignore[no-untyped-call]  # torch leaves it untyped
            return Node("buffer", path, type_name, identity, as_bytes(memory).cpu().numpy().copy())
        if kind in ("array", "buffer"):
            owner = owner_of(self.ranges, _address_of(value)) if kind == "array" and identity >= 0 else None
            memory = Node("atom", f"memory of {path}", "builtins.int", value=owner)
            copied, source = numpy.array(value, copy=True), _source_of(value) if kind == "array" else None
            self.described.add(id(value))
            held = {name: self.describe(name, part, depth + 1) for name, part in described_parts(path, kind, value)}
            return Node(kind, path, type_name, identity, copied, {memory.path: memory, **held}, source=source)
        if identity < 0 and not inside and kind != "tuple":
            return Node(kind, path, type_name, identity, again=True)
        self.described.add(id(value))
        parts = described_parts(path, kind, value)
        if kind == "function" and identity < 0:
            parts.append((f"code of {path}", value.__code__))
        children = {name: self.describe(name, part, depth + 1) for name, part in parts}
        return Node(kind, path, type_name, identity, children=children)

    def _iterator(self, path: str, type_name: str, identity: int, value: Any, depth: int) -> Node:
        """Describe a new iterator by what it gives; nothing is taken from the live run's, which is the user's."""
        if not self.uses_up or depth > DEEPEST:
            return Node("iterator", path, type_name, identity)
        self.has_used_up = True
        items: list[Any] = []
        end = "its end"
        try:
            with with_overrides():
                items.extend(itertools.islice(value, MOST_YIELDED))
        except Exception as error:
            end = type(error).__name__
        named = [(f"{path} item {number}", item) for number, item in enumerate(items)]
        named.append((f"number of items of {path}", f"{len(items)}, then {end}"))
        children = {name: self.describe(name, item, depth + 1) for name, item in named}
        return Node("iterator", path, type_name, identity, children=children)

    def _number(self, value: object) -> int:
        before = self.snapshot.index.get(id(self.stand_ins.original_of(value)))
        return -1 - before if before is not None else self.numbers.setdefault(id(value), len(self.numbers))
