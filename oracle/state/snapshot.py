"""Snapshot and rewind: what a call may change is saved before it and restored after it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from plumbline.compiler.base.torch_facts import functorch_is_active, unwrapped

from .process_state import ProcessState
from .random_state import RandomState
from .saved_objects import SavedBinding, SavedState, save_binding, save_fields, save_object
from .saved_tensors import SavedStorage, SavedTensorState, can_be_saved, has_storage, plain_parts
from .walk import Walk, walk


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What differs from the snapshot at one moment: entries, and storages by `_cdata`."""

    entries: list[tuple[str, object, SavedState]]
    storages: frozenset[int]


class Snapshot:
    """Everything the roots reach, saved; `rewind` restores it, any number of times.

    entries: path, object and `SavedState` of each visited object that has content, in the order of the walk.
    storages: by identity (`_cdata`).  arrays: NumPy's, whose memory tensors may share.  obstacles: reasons why a
    reference run cannot be undone, empty when it can.
    """

    def __init__(self, reached: Walk) -> None:
        self.reached = reached
        self.entries: list[tuple[str, object, SavedState]] = []
        self.storages: dict[int, SavedStorage] = {}
        self.index: dict[int, int] = {}
        self.obstacles: list[str] = [f"{path} cannot be rewound" for path in reached.forward_only]
        if functorch_is_active():
            self.obstacles.append("the call is inside a transform of torch.func, whose tensors have no memory")
        if reached.truncated:
            self.obstacles.append("the call reaches more objects than can be saved")
        for number, visit in enumerate(reached.visits):
            self.index[id(visit.value)] = number
            self._save(visit.path, visit.kind, visit.value)
        self.arrays = [visit.value for visit in reached.visits if visit.kind == "array"]
        self.bindings = [save_binding(binding) for binding in reached.bindings]
        self.random = RandomState.now()
        self.process = ProcessState.now()

    @classmethod
    def take(cls, roots: Mapping[str, object]) -> "Snapshot":
        """Walk from the roots and save everything reached."""
        return cls(walk(roots))

    def _save(self, path: str, kind: str, value: Any) -> None:
        if kind == "tensor":
            inner = unwrapped(value)
            if inner is not None:  # a value that outlived its transform: only the memory inside it can change
                self._save(path, kind, inner)
                return
            if isinstance(value, UninitializedParameter | UninitializedBuffer):
                self.obstacles.append(f"{path} is not initialised yet, and cannot be made so again")
                return
            if not can_be_saved(value):
                form = "nested" if value.is_nested else f"of layout {value.layout} on {value.device}"
                self.obstacles.append(f"{path} is a {type(value).__name__} {form}, which cannot be rewound")
                return
            for part in filter(has_storage, plain_parts(value)):
                storage = part.untyped_storage()
                if storage._cdata not in self.storages:
                    self.storages[storage._cdata] = SavedStorage(storage)
        saved = SavedTensorState(value) if kind == "tensor" else save_object(kind, value)
        if saved is not None:
            self.entries.append((path, value, saved))
        if kind in ("list", "dict", "deque", "set") and hasattr(value, "__dict__"):
            self.entries.append((path, value, save_fields(value)))

    def changed_bindings(self) -> list[SavedBinding]:
        """Return the global names bound to something else now."""
        return [saved for saved in self.bindings if saved.changed()]

    def not_rewindable(self) -> list[str]:
        """Return what the last run changed beyond repair: places in the autograd graph."""
        return [
            f"{path} was changed in place inside the autograd graph"
            for path, _, saved in self.entries
            if isinstance(saved, SavedTensorState) and not saved.rewindable()
        ]

    def changes(self) -> Changes:
        """Look at everything that was saved, every byte included."""
        entries = [entry for entry in self.entries if entry[2].changed()]
        return Changes(entries, frozenset(key for key, saved in self.storages.items() if saved.changed()))

    def rewind(self, changes: Changes | None = None) -> None:
        """Restore everything to the moment of the snapshot.

        changes: what differs now, where somebody has just looked.
        """
        changes = changes or self.changes()
        self.process.restore()
        with torch.no_grad():
            for saved_binding in self.bindings:
                if saved_binding.changed():
                    saved_binding.restore()
            changed = {id(saved) for _, _, saved in changes.entries}
            for _, _, saved in self.entries:
                if isinstance(saved, SavedTensorState) or id(saved) in changed:
                    saved.restore()
            for key in changes.storages:
                self.storages[key].restore()
        self.random.restore()
