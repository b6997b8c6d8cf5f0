"""What a run left behind: its output, its exception, and every reached object that it changed, described by value.

`comparison` compares the outcomes of eager and of the compiled program.
"""

import contextvars
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .argument_stand_ins import StandIns
from .children import fields_of
from .description import Describer, Node
from .saved_tensors import SavedTensorState, as_bytes, is_freed, plain_parts, storages_of, version_of
from .snapshot import Changes, Snapshot
from .tensor_records import TensorRecord


@dataclass(frozen=True, slots=True, eq=False)
class RunOutcome:
    """What one run did.

    output: description of the returned value, None when it raised.  error: the exception, None otherwise.
    changed: by path, the objects that existed before and changed, described.
    bindings: by path, global names bound to something else.
    observed: by aspect, what its row in the table of aspects observes; empty for a run that is not compared.
    seconds: wall time.  variables: the context variables that the call can reach.  changes: what differs from the
    snapshot right after the run.  before: what a tensor held before the call, by path.
    uncounted: paths of tensors that were written to without autograd's notice.
    """

    output: Node | None
    error: BaseException | None
    changed: Mapping[str, Node]
    bindings: Mapping[str, Node]
    observed: Mapping[str, object]
    changes: Changes
    seconds: float = 0.0
    variables: "frozenset[contextvars.ContextVar[Any]]" = frozenset()
    before: Callable[[str], torch.Tensor | None] = lambda path: None
    uncounted: frozenset[str] = frozenset()

    def tensors(self) -> dict[str, TensorRecord]:
        """Return every described tensor by path: outputs first, then changed state."""
        return {node.path: node.value for tree in self._trees() for node in tree.tensors()}

    def live_tensors(self) -> dict[str, torch.Tensor]:
        """Return the tensors themselves by path, with those that arrays show: whose rounding can be followed."""
        sources = {path: tensor for tree in self._trees() for path, tensor in tree.sources().items()}
        return sources | {path: record.original for path, record in self.tensors().items()}

    def _trees(self) -> list[Node]:
        return ([self.output] if self.output else []) + list(self.changed.values()) + list(self.bindings.values())


@dataclass(frozen=True, slots=True, eq=False)
class ProgramEnd:
    """How a program ended: its output or exception, its wall time, and what was observed, by aspect."""

    output: Any
    error: BaseException | None
    seconds: float
    observed: Mapping[str, object]


def outcome_of(snapshot: Snapshot, ended: ProgramEnd, stand_ins: StandIns, *, live: bool = False) -> RunOutcome:
    """Describe what a run left behind; to be called right after the run, before anything is rewound.

    live: the run was the user's, whose iterators are not to be advanced.
    """
    describer = Describer(snapshot, stand_ins, uses_up=not live)
    changes, rebound = snapshot.changes(), snapshot.changed_bindings()  # by the call, not by a look at what it gives
    described = describer.describe("output", ended.output) if ended.error is None else None
    changed = _changed_state(snapshot, describer, changes)
    bindings = {
        saved.binding.path: describer.describe(saved.binding.path, saved.binding.namespace.get(saved.binding.name))
        for saved in rebound
    }
    changes = snapshot.changes() if describer.has_used_up else changes
    variables, known = snapshot.reached.variables, snapshot.saved_numbers
    uncounted = frozenset(
        path
        for path, value, saved in snapshot.entries
        if path in changed and isinstance(saved, SavedTensorState) and id(value) not in stand_ins.by_original
        if saved.version == version_of(saved.value) and not changes.storages.isdisjoint(storages_of(saved.alias))
    )
    return RunOutcome(
        described, ended.error, changed, bindings, ended.observed, changes, ended.seconds, variables, known, uncounted
    )


def _changed_state(snapshot: Snapshot, describer: Describer, changes: Changes) -> dict[str, Node]:
    """Describe every object that existed before the call and has changed; tensors whose memory changed included."""
    dtypes = _dtypes_of_storages(snapshot) if changes.storages else {}
    changed_around: dict[str, Node] = {}
    dirty = {key for key in changes.storages if not snapshot.storages[key].holds_equal_numbers(dtypes.get(key, set()))}
    for key in dirty:
        if _wrote_beyond(snapshot, key):
            path = next(path for path, _, saved in snapshot.entries if _views(saved, key))
            changed_around[f"memory around {path}"] = Node(
                "atom", f"memory around {path}", "builtins.str", value="changed"
            )
    changed_entries = {id(saved) for _, _, saved in changes.entries}
    by_original = describer.stand_ins.by_original
    changed: dict[str, Node] = changed_around
    entries = snapshot.entries
    if not dirty and not changed_entries:
        entries = [entry for entry in entries if id(entry[1]) in by_original]
    for path, value, saved in entries:
        if isinstance(saved, SavedTensorState):
            pair = by_original.get(id(value))
            now = pair.passed if pair else saved.value
            in_dirty = bool(dirty) and not dirty.isdisjoint(storages_of(saved.alias))
            if (pair and _differs(now, saved)) or in_dirty or id(saved) in changed_entries:
                describer.described.discard(id(now))
                changed[path] = describer.describe(path, now)
                if now.is_leaf and now.grad is not saved.grad:
                    changed[f"{path}.grad"] = describer.describe(f"{path}.grad", now.grad)
        elif isinstance(value, torch.Tensor):
            pair = by_original.get(id(value))
            if id(saved) in changed_entries or (pair and _other_fields(pair.passed, value)):
                for name, item in fields_of(pair.passed if pair else value):
                    changed[f"{path}.{name}"] = describer.describe(f"{path}.{name}", item)
        elif id(saved) in changed_entries:
            changed[path] = describer.describe(path, value, inside=True)
    return changed


def memory_taken_apart(snapshot: Snapshot, changes: Changes, stand_ins: StandIns) -> list[str]:
    """Return why a run on stand-ins is none on the arguments: it wrote to memory that others in reach view as well.

    A stand-in has memory of its own; a leaf or a captured tensor that shared the argument's does not see its writes.
    """
    saved_tensors = [saved for _, _, saved in snapshot.entries if isinstance(saved, SavedTensorState)]
    others = [saved for saved in saved_tensors if id(saved.value) not in stand_ins.by_original]
    for saved in saved_tensors:
        pair = stand_ins.by_original.get(id(saved.value))
        if pair is None:
            continue
        memory = pair.original.untyped_storage()._cdata
        shared = any(memory in storages_of(other.alias) for other in others)
        if shared and (memory in changes.storages or _differs(pair.passed, saved)):
            return ["the call writes to memory of an argument inside the autograd graph that others in reach share"]
    return []


def _other_fields(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors have other attributes, by the identity of what these hold."""
    one, two = vars(first), vars(second)
    return one.keys() != two.keys() or not all(one[name] is two[name] for name in one)


def _views(saved: object, key: int) -> bool:
    return isinstance(saved, SavedTensorState) and key in storages_of(saved.alias)


def _wrote_beyond(snapshot: Snapshot, key: int) -> bool:
    """Return whether bytes of a storage have changed that no reached tensor views."""
    storage = snapshot.storages[key]
    parts = [
        part
        for _, _, saved in snapshot.entries
        if isinstance(saved, SavedTensorState)
        for part in plain_parts(saved.alias)
        if part.untyped_storage()._cdata == key
    ]
    full = any(part.numel() * part.element_size() >= storage.nbytes and part.is_contiguous() for part in parts)
    if full or storage.storage.nbytes() != storage.nbytes or storage.storage.device.type != "cpu":
        return False
    beyond = as_bytes(storage.storage) != as_bytes(storage.saved)
    for part in parts:
        size = part.element_size()
        strides = [step * size for step in part.stride()]
        beyond.as_strided((*part.shape, size), (*strides, 1), part.storage_offset() * size).fill_(False)
    return bool(beyond.any())


def _dtypes_of_storages(snapshot: Snapshot) -> dict[int, set[torch.dtype]]:
    """Return for each storage the dtypes of the tensors that view it."""
    dtypes: dict[int, set[torch.dtype]] = {}
    for _, _, saved in snapshot.entries:
        if isinstance(saved, SavedTensorState):
            for part in plain_parts(saved.alias):
                dtypes.setdefault(part.untyped_storage()._cdata, set()).add(part.dtype)
    return dtypes


def _differs(now: torch.Tensor, saved: SavedTensorState) -> bool:
    """Return whether a stand-in differs from the (untouched) tensor it replaces."""
    before = saved.alias
    same_form = now.shape == before.shape and now.dtype == before.dtype and now.requires_grad == saved.requires_grad
    return not same_form or is_freed(now) or is_freed(before) or not _bitwise_equal(now.detach(), before)


def _bitwise_equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    return torch.equal(torch.nan_to_num(first), torch.nan_to_num(second)) and torch.equal(first.isnan(), second.isnan())
