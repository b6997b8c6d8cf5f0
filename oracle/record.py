"""What a run left behind, described by value: its output, its exception, every reached object it changed.

`comparison` compares the records of eager and of the compiled program.  Objects that existed before the call are
identified by their number in the snapshot, so identity and sharing are visible.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from .state.argument_stand_ins import StandIns
from .state.saved_tensors import SavedTensorState, has_storage
from .state.snapshot import Snapshot
from .state.walk import children_of, class_attributes, fields_of, kind_of

DEEPEST = 60
"""Levels of nesting described; deeper ones are opaque."""


@dataclass(frozen=True, slots=True, eq=False)
class TensorRecord:
    """One tensor by value.

    value: a detached copy with the strides of the original.  storage: number of the storage, negative for those that
    existed before the call.  offset: in elements.
    """

    value: torch.Tensor
    dtype: torch.dtype
    device: torch.device
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    storage: int | None
    requires_grad: bool
    type_name: str
    original: torch.Tensor  # the live tensor: keeps its storage alive, finds its lanes


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One object described: an atom by value, a tensor by record, a container by its children.

    identity: number of the object; negative for those that existed before the call.  again: described before.
    """

    kind: str
    path: str
    type_name: str
    identity: int | None = None
    value: Any = None
    children: Mapping[str, "Node"] = field(default_factory=dict)
    again: bool = False

    def tensors(self) -> "list[Node]":
        """Return every node of a tensor in this tree, in order."""
        nodes = [self] if self.kind == "tensor" and not self.again else []
        for child in self.children.values():
            nodes.extend(child.tensors())
        return nodes


@dataclass(frozen=True, slots=True, eq=False)
class RunOutcome:
    """What one run did.

    output: description of the returned value, None when it raised.  error: the exception, None otherwise.
    changed: by path, the objects that existed before and changed, described.
    bindings: by path, global names bound to something else.
    observed: by aspect, what its row in the table of aspects observes; empty for a run that is not compared.
    seconds: wall time.
    """

    output: Node | None
    error: BaseException | None
    changed: Mapping[str, Node]
    bindings: Mapping[str, Node]
    observed: Mapping[str, object]
    seconds: float = 0.0

    def tensors(self) -> dict[str, TensorRecord]:
        """Return every described tensor by path: outputs first, then changed state."""
        trees = ([self.output] if self.output else []) + list(self.changed.values()) + list(self.bindings.values())
        return {node.path: node.value for tree in trees for node in tree.tensors()}


@dataclass(frozen=True, slots=True, eq=False)
class ProgramEnd:
    """How a program ended: its output or exception, its wall time, and what was observed, by aspect."""

    output: Any
    error: BaseException | None
    seconds: float
    observed: Mapping[str, object]


class Describer:
    """Describes objects of one run; numbers new objects and storages in the order of the visit."""

    def __init__(self, snapshot: Snapshot, stand_ins: StandIns) -> None:
        self.snapshot = snapshot
        self.stand_ins = stand_ins
        self.numbers: dict[int, int] = {}
        self.described: set[int] = set()
        self.records: dict[int, TensorRecord] = {}
        self.storages: dict[int, int] = {}
        self.known_storages = {key: -1 - number for number, key in enumerate(snapshot.storages)}
        for pair in stand_ins.pairs:  # a stand-in's memory counts as that of the tensor it replaces
            before = self.known_storages.get(pair.original.untyped_storage()._cdata)
            if before is not None:
                self.known_storages[pair.passed.untyped_storage()._cdata] = before
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
        if kind == "tensor":
            self.described.add(id(value))
            if not again:
                self.records[id(value)] = self._tensor(value)
            return Node(kind, path, type_name, identity, self.records[id(value)], again=again)
        if again and not inside:
            return Node(kind, path, type_name, identity, again=True)
        if kind in ("closed", "forward-only", "generator") or depth > DEEPEST or (kind == "class" and not inside):
            return Node("opaque", path, type_name, identity)
        if kind in ("array", "buffer"):
            return Node(kind, path, type_name, identity, numpy.array(value, copy=True))
        if identity < 0 and not inside and kind != "tuple":
            return Node(kind, path, type_name, identity, again=True)
        self.described.add(id(value))
        return Node(kind, path, type_name, identity, children=self._children(path, kind, value, depth))

    def _children(self, path: str, kind: str, value: Any, depth: int) -> dict[str, Node]:
        if kind == "set":
            pairs: list[tuple[str, object]] = list(enumerate_members(path, value))
        elif kind == "dict":
            pairs = [(f"{path}[{key!r}]", child) for key, child in value.items()]
            pairs += [(f"{path}.{name}", child) for name, child in fields_of(value)]
        elif kind in ("object", "class"):
            fields = class_attributes(value) if kind == "class" else fields_of(value)
            pairs = [(f"{path}.{name}", child) for name, child in fields]
        else:
            pairs = list(children_of(path, kind, value))
        return {name: self.describe(name, child, depth + 1) for name, child in pairs}

    def _number(self, value: object) -> int:
        before = self.snapshot.index.get(id(self.stand_ins.original_of(value)))
        return -1 - before if before is not None else self.numbers.setdefault(id(value), len(self.numbers))

    def _tensor(self, value: torch.Tensor) -> TensorRecord:
        storage = None
        if has_storage(value) and value.untyped_storage().nbytes():
            key = value.untyped_storage()._cdata
            known = self.known_storages.get(key)
            storage = known if known is not None else self.storages.setdefault(key, len(self.storages))
        strided = value.layout == torch.strided
        return TensorRecord(
            value=copy_of(value),
            dtype=value.dtype,
            device=value.device,
            shape=tuple(value.shape),
            stride=tuple(value.stride()) if strided else (),
            offset=int(value.storage_offset()) if strided else 0,
            storage=storage,
            requires_grad=value.requires_grad,
            type_name=type(value).__qualname__,
            original=value,
        )


def enumerate_members(path: str, members: set[object]) -> list[tuple[str, object]]:
    """Return the members of a set with paths, in an order that depends on their values alone."""
    return [(f"{path} member {number}", member) for number, member in enumerate(sorted(members, key=repr))]


def copy_of(value: torch.Tensor) -> torch.Tensor:
    """Return a detached copy by value; sparse and quantised tensors become plain."""
    with torch.no_grad():
        plain = value.detach()
        if plain.layout != torch.strided:
            plain = plain.to_dense()
        if plain.is_quantized:
            plain = plain.dequantize()
        return plain.resolve_conj().resolve_neg().clone()


def outcome_of(snapshot: Snapshot, ended: ProgramEnd, stand_ins: StandIns) -> RunOutcome:
    """Describe what a run left behind; to be called right after the run, before anything is rewound."""
    describer = Describer(snapshot, stand_ins)
    described = describer.describe("output", ended.output) if ended.error is None else None
    changed = _changed_state(snapshot, describer)
    bindings = {
        saved.binding.path: describer.describe(saved.binding.path, saved.binding.namespace.get(saved.binding.name))
        for saved in snapshot.changed_bindings()
    }
    return RunOutcome(described, ended.error, changed, bindings, ended.observed, ended.seconds)


def _changed_state(snapshot: Snapshot, describer: Describer) -> dict[str, Node]:
    """Describe every object that existed before the call and has changed; tensors whose memory changed included."""
    dirty = {key for key, saved in snapshot.storages.items() if saved.changed()}
    changed: dict[str, Node] = {}
    for path, value, saved in snapshot.entries:
        if isinstance(saved, SavedTensorState):
            pair = describer.stand_ins.by_original.get(id(value))
            now = pair.passed if pair else saved.value
            if (pair and _differs(now, saved)) or saved.alias.untyped_storage()._cdata in dirty or saved.changed():
                describer.described.discard(id(now))
                changed[path] = describer.describe(path, now)
                if now.is_leaf and now.grad is not saved.grad:
                    changed[f"{path}.grad"] = describer.describe(f"{path}.grad", now.grad)
        elif saved.changed():
            changed[path] = describer.describe(path, value, inside=True)
    return changed


def _differs(now: torch.Tensor, saved: SavedTensorState) -> bool:
    """Return whether a stand-in differs from the (untouched) tensor it replaces."""
    before = saved.alias
    return now.shape != before.shape or now.dtype != before.dtype or not _bitwise_equal(now.detach(), before)


def _bitwise_equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    return torch.equal(torch.nan_to_num(first), torch.nan_to_num(second)) and torch.equal(first.isnan(), second.isnan())
