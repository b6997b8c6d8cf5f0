"""Snapshot and rewind: what a call may change is saved before it and restored after it."""

import dis
import functools
import types
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from plumbline.compiler.base.torch_facts import functorch_is_active, unwrapped

from .kinds import is_library_module
from .process_state import ProcessState
from .random_state import RandomState
from .saved_caches import SavedCache
from .saved_library_objects import SavedLibraryObject
from .saved_objects import SavedBinding, SavedState, save_bindings, save_fields, save_object
from .saved_tensors import SavedStorage, SavedTensorState, can_be_saved, has_storage, plain_parts
from .walk import Visit, Walk, walk

_WITH_FIELDS = frozenset({"tensor", "list", "dict", "deque", "set", "array", "tuple"})
"""Kinds with content of their own, and attributes beside it."""

_ORDINARY = (torch.Tensor, torch.nn.Parameter)


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What differs from the snapshot at one moment: entries, and storages by `_cdata`."""

    entries: list[tuple[str, object, SavedState]]
    storages: frozenset[int]


class Snapshot:
    """Everything the roots reach, saved; `rewind` restores it, any number of times.

    entries: path, object and `SavedState` of each visited object that has content, in the order of the walk.
    storages: by identity (`_cdata`).  arrays: NumPy's, whose memory tensors may share.  obstacles: reasons why a
    reference run cannot be undone, empty when it can.  caches: those of `lru_cache`, rewound if `rewinds_caches`.
    """

    def __init__(self, reached: Walk, roots: Mapping[str, object]) -> None:
        self.reached = reached
        self.roots = roots
        self.entries: list[tuple[str, object, SavedState]] = []
        self.storages: dict[int, SavedStorage] = {}
        self.index: dict[int, int] = {}
        self.obstacles: list[str] = [f"{path} cannot be rewound" for path in reached.forward_only]
        self.obstacles += [f"{path} may be released, for good" for path in _releasable(reached)]
        if functorch_is_active():
            self.obstacles.append("the call is inside a transform of torch.func, whose tensors have no memory")
        if reached.truncated:
            self.obstacles.append("the call reaches more objects than can be saved")
        for number, visit in enumerate(reached.visits):
            self.index[id(visit.value)] = number
            self._save(visit.path, visit.kind, visit.value)
        self.arrays = [visit.value for visit in reached.visits if visit.kind == "array"]
        cached = [visit.value for visit in reached.visits if isinstance(visit.value, functools._lru_cache_wrapper)]
        self.caches = [SavedCache(cache) for cache in cached]
        self.rewinds_caches = False
        self.bindings = save_bindings(reached.bindings)
        self.random = RandomState.now()
        self.process = ProcessState.now()

    @classmethod
    def take(cls, roots: Mapping[str, object], reached: Walk | None = None) -> "Snapshot":
        """Walk from the roots and save everything reached; reached: that walk, where it has just been made."""
        return cls(walk(roots) if reached is None else reached, roots)

    def _save(self, path: str, kind: str, value: Any) -> None:
        if kind == "tensor":
            inner = unwrapped(value)
            if inner is not None:  # a value that outlived its transform: only the memory inside it can change
                self._save(path, kind, inner)
                return
            # Asking a parameter for its class takes torch's own `isinstance`, written in Python.
            if type(value) not in _ORDINARY and isinstance(value, UninitializedParameter | UninitializedBuffer):
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
        if kind in _WITH_FIELDS and hasattr(value, "__dict__"):
            self.entries.append((path, value, save_fields(value)))

    def changed_bindings(self) -> list[SavedBinding]:
        """Return the global names bound to something else now."""
        return [saved for saved in self.bindings if saved.changed()]

    def saved_numbers(self, path: str) -> torch.Tensor | None:
        """Return what the tensor at a path held, in its shape, requiring grad as it did; None without plain memory."""
        for known, _, saved in self.entries:
            if known == path and isinstance(saved, SavedTensorState) and has_storage(saved.alias):
                alias, memory = saved.alias, self.storages[saved.alias.untyped_storage()._cdata].saved
                plain = torch.empty(0, dtype=alias.dtype, device=alias.device)
                plain.set_(memory, alias.storage_offset(), alias.shape, alias.stride())
                return plain.requires_grad_() if saved.requires_grad else plain
        return None

    def not_rewindable(self) -> list[str]:
        """Return what the last run changed beyond repair: places in the autograd graph, hashes, databases."""
        return [
            f"{path} was changed in place inside the autograd graph"
            for path, _, saved in self.entries
            if isinstance(saved, SavedTensorState) and not saved.rewindable()
        ] + [
            f"{path} was changed, a {type(saved.value).__name__} that cannot be set back"
            for path, _, saved in self.entries
            if isinstance(saved, SavedLibraryObject) and saved.row.write is None and saved.changed()
        ]

    def ended(self, output: object) -> list[str]:
        """Return what the last run would have ended, had nobody held it: objects with finalisers.

        output: what the run returned, which keeps objects alive as well, and ends only after the call is judged.
        """
        if any(visit.kind == "class" and "__del__" in vars(visit.value) for visit in self.reached.visits):
            known = {id(visit.value) for visit in self.reached.visits}
            returned = [one for one in walk({"output": output}).visits if id(one.value) not in known]
            made = [one.path for one in returned if _has_finaliser(one)]
            if made:
                return [f"{path} has a finaliser, which would run for each run's own" for path in made]
        final = [visit for visit in self.reached.visits if _has_finaliser(visit)]
        if not final or not (self.changes().entries or self.changed_bindings()):
            return []
        alive = {id(visit.value) for visit in walk({**self.roots, "what the run returned": output}).visits}
        return [
            f"{visit.path} ends in the call, and has a finaliser" for visit in final if id(visit.value) not in alive
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
            for saved_binding in self.changed_bindings():
                saved_binding.restore()
            changed = {id(saved) for _, _, saved in changes.entries}
            for _, _, saved in self.entries:
                if isinstance(saved, SavedTensorState) or id(saved) in changed:
                    saved.restore()
            self._undo_finalisers(changes)
            for key in changes.storages:
                self.storages[key].restore()
        for cache in self.caches if self.rewinds_caches else ():
            cache.restore()
        self.random.restore()

    def _undo_finalisers(self, changes: Changes) -> None:
        """Restore what finalisers wrote of objects that a run had made: they ended when containers were refilled."""
        if all(isinstance(saved, SavedTensorState) for _, _, saved in changes.entries):
            return
        for _ in range(_MOST_ENDINGS):
            written = [saved for _, _, saved in self.entries if not isinstance(saved, SavedTensorState)]
            written = [saved for saved in written if saved.changed()]
            if not written:
                return
            for saved in written:
                saved.restore()


_MOST_ENDINGS = 3
"""How often what has ended may end others."""


def _releasable(reached: Walk) -> list[str]:
    """Return the paths of views of memory (`memoryview`), if code in reach releases something or has a `with`."""
    views = [visit.path for visit in reached.visits if type(visit.value) is memoryview]
    codes = (visit.value.__code__ for visit in reached.visits if isinstance(visit.value, types.FunctionType))
    return views if views and any(map(_may_release, codes)) else []


def _may_release(code: types.CodeType) -> bool:
    if "release" in code.co_names or any("WITH" in step.opname for step in dis.get_instructions(code)):
        return True
    return any(_may_release(part) for part in code.co_consts if isinstance(part, types.CodeType))


def _has_finaliser(visit: Visit) -> bool:
    """Return whether something of the program's runs when this object ends."""
    if visit.kind not in _MORTAL:
        return False
    if any("__del__" in vars(base) for base in type(visit.value).__mro__ if not is_library_module(base.__module__)):
        return True
    callbacks = [reference.__callback__ for reference in weakref.getweakrefs(visit.value)]
    return any(isinstance(call, weakref.finalize) or not _is_library(call) for call in callbacks if call is not None)


def _is_library(callback: object) -> bool:
    return is_library_module(getattr(callback, "__module__", None) or "plumbline")


_MORTAL = frozenset({"object", "list", "dict", "set", "deque"})  # of these kinds, programs drop what they hold
