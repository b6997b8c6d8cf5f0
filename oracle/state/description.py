"""Objects described by value, so that what two runs left behind can be compared.

Objects that existed before the call are identified by their number in the snapshot, so identity and sharing are
visible.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from .argument_stand_ins import StandIns
from .saved_tensors import has_storage
from .snapshot import Snapshot
from .walk import children_of, class_attributes, fields_of, kind_of

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
        if again and not inside and kind != "tuple":  # which of two equal tuples it is, Python does not promise
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
