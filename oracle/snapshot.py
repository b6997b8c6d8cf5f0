"""Snapshot and rewind: what a call may change, saved before it and set back after it.

Storages are saved byte by byte and set back without touching version counters.  User objects are never copied:
each reached container, object, cell, class and global name keeps its identity, and its content is put back.
"""

import copy
import random
import types
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy
import torch

from plumbline.compiler.base.torch_facts import unwrapped

from .random_state import RandomState
from .walk import ATOMS, Binding, Walk, class_attributes, is_mark, slot_names, walk

_MISSING = object()


class Saved(Protocol):
    """The saved content of one object."""

    def changed(self) -> bool:
        """Return whether the content differs now from what was saved."""

    def restore(self) -> None:
        """Put the saved content back."""


def same(first: object, second: object) -> bool:
    """Return whether two slots hold the same object, or equal values of a type without identity."""
    if first is second:
        return True
    return type(first) is type(second) and isinstance(first, ATOMS) and bool(first == second)


def _same_items(first: Iterable[object], second: Iterable[object]) -> bool:
    mine, theirs = list(first), list(second)
    return len(mine) == len(theirs) and all(map(same, mine, theirs))


@dataclass(frozen=True, slots=True)
class SavedSequence:
    """A list or deque."""

    value: Any
    items: tuple[object, ...]

    def changed(self) -> bool:
        """Compare item by item."""
        return not _same_items(self.value, self.items)

    def restore(self) -> None:
        """Refill the container with its old items."""
        self.value.clear()
        self.value.extend(self.items)


@dataclass(frozen=True, slots=True)
class SavedSet:
    """A mutable set."""

    value: Any
    items: frozenset[object]

    def changed(self) -> bool:
        """Compare members."""
        return bool(self.value != self.items)

    def restore(self) -> None:
        """Refill the set."""
        if isinstance(self.value, set):
            self.value.clear()
            self.value.update(self.items)


@dataclass(frozen=True, slots=True)
class SavedDict:
    """A dict of any subclass, its order included."""

    value: Any
    items: tuple[tuple[object, object], ...]

    def changed(self) -> bool:
        """Compare keys in order and values."""
        now = [(key, item) for key, item in self.value.items() if not is_mark(key)]
        mine, theirs = [k for k, _ in now], [k for k, _ in self.items]
        return not (_same_items(mine, theirs) and _same_items((v for _, v in now), (v for _, v in self.items)))

    def restore(self) -> None:
        """Refill through dict's own methods, so that a subclass's hooks see nothing."""
        base = _plain_mapping(self.value)
        marks = [(key, item) for key, item in self.value.items() if is_mark(key)]
        base.clear(self.value)
        for key, item in (*self.items, *marks):
            base.__setitem__(self.value, key, item)


def _save_dict(value: Any) -> SavedDict:
    return SavedDict(value, tuple((key, item) for key, item in value.items() if not is_mark(key)))


def _plain_mapping(value: object) -> Any:
    """Return the built-in base whose methods move items without user code (OrderedDict keeps its own links)."""
    for base in type(value).__mro__:
        if base.__module__ in ("builtins", "collections") and issubclass(base, dict):
            return base
    return dict


@dataclass(frozen=True, slots=True)
class SavedFields:
    """An object's `__dict__` and slots."""

    value: Any
    fields: SavedDict | None
    slots: tuple[tuple[str, object], ...]

    def changed(self) -> bool:
        """Compare attribute by attribute."""
        if self.fields is not None and self.fields.changed():
            return True
        return not _same_items((_slot(self.value, name) for name, _ in self.slots), (item for _, item in self.slots))

    def restore(self) -> None:
        """Put attributes back without running `__setattr__`."""
        if self.fields is not None and self.fields.changed():
            self.fields.restore()
        for name, item in self.slots:
            if _slot(self.value, name) is item:
                continue
            with suppress(AttributeError, TypeError):  # read-only slots of C types never changed
                if item is _MISSING:
                    object.__delattr__(self.value, name)
                else:
                    object.__setattr__(self.value, name, item)


def _slot(value: object, name: str) -> object:
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return _MISSING


@dataclass(frozen=True, slots=True)
class SavedCell:
    """A closure cell."""

    value: types.CellType
    content: object

    def changed(self) -> bool:
        """Compare the content, an empty cell apart."""
        return not same(_cell_content(self.value), self.content)

    def restore(self) -> None:
        """Fill or empty the cell as it was."""
        if self.content is not _MISSING:
            self.value.cell_contents = self.content
        elif _cell_content(self.value) is not _MISSING:
            del self.value.cell_contents


def _cell_content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


@dataclass(frozen=True, slots=True)
class SavedFunction:
    """A function's defaults and attributes."""

    value: types.FunctionType
    defaults: tuple[object, ...] | None
    keyword_defaults: dict[str, object] | None
    attributes: SavedDict

    def changed(self) -> bool:
        """Compare what calls read."""
        return (
            self.value.__defaults__ is not self.defaults
            or (self.value.__kwdefaults__ or None) != (self.keyword_defaults or None)
            or self.attributes.changed()
        )

    def restore(self) -> None:
        """Set defaults and attributes back."""
        self.value.__defaults__ = self.defaults
        self.value.__kwdefaults__ = dict(self.keyword_defaults) if self.keyword_defaults else None
        if self.attributes.changed():
            self.attributes.restore()


@dataclass(frozen=True, slots=True)
class SavedClass:
    """The attributes a user class defines."""

    value: type
    attributes: tuple[tuple[str, object], ...]

    def changed(self) -> bool:
        """Compare names and values."""
        now = dict(class_attributes(self.value))
        saved = dict(self.attributes)
        return now.keys() != saved.keys() or not all(same(now[name], saved[name]) for name in saved)

    def restore(self) -> None:
        """Set changed attributes back and drop new ones, without a metaclass's own `__setattr__`."""
        now = dict(class_attributes(self.value))
        saved = dict(self.attributes)
        for name in now.keys() - saved.keys():
            type.__delattr__(self.value, name)
        for name, item in saved.items():
            if name not in now or now[name] is not item:
                type.__setattr__(self.value, name, item)


@dataclass(frozen=True, slots=True)
class SavedBinding:
    """A global name, or the attribute of a user's module."""

    binding: Binding
    content: object

    def changed(self) -> bool:
        """Compare what the name is bound to."""
        return not same(self.binding.namespace.get(self.binding.name, _MISSING), self.content)

    def restore(self) -> None:
        """Bind or unbind the name as it was."""
        if self.content is _MISSING:
            self.binding.namespace.pop(self.binding.name, None)
        else:
            self.binding.namespace[self.binding.name] = self.content


@dataclass(frozen=True, slots=True)
class SavedBytes:
    """A bytearray, array.array or NumPy array, by content."""

    value: Any
    content: Any

    def changed(self) -> bool:
        """Compare bytes (NaN equals itself)."""
        if isinstance(self.value, numpy.ndarray):
            same_form = self.value.shape == self.content.shape and self.value.dtype == self.content.dtype
            return not same_form or self.value.tobytes() != self.content.tobytes()
        return bool(self.value != self.content)

    def restore(self) -> None:
        """Copy the old content in."""
        if not self.changed():
            return
        if isinstance(self.value, numpy.ndarray):
            if self.value.shape != self.content.shape:
                self.value.resize(self.content.shape, refcheck=False)
            numpy.copyto(self.value, self.content)
        else:
            self.value[:] = self.content


@dataclass(frozen=True, slots=True)
class SavedGenerator:
    """A random generator that the program owns: torch's, NumPy's or Python's."""

    value: Any
    state: Any

    def changed(self) -> bool:
        """Compare states."""
        now = _generator_state(self.value)
        return not (torch.equal(now, self.state) if isinstance(now, torch.Tensor) else repr(now) == repr(self.state))

    def restore(self) -> None:
        """Set the state back."""
        if isinstance(self.value, torch.Generator):
            self.value.set_state(self.state)
        elif isinstance(self.value, numpy.random.Generator):
            self.value.bit_generator.state = self.state
        elif isinstance(self.value, numpy.random.RandomState):
            self.value.set_state(self.state)
        else:
            self.value.setstate(self.state)


def _generator_state(value: Any) -> Any:
    if isinstance(value, numpy.random.Generator):
        return copy.deepcopy(value.bit_generator.state)
    if isinstance(value, random.Random):
        return value.getstate()
    return value.get_state()


class SavedStorage:
    """The bytes of one storage, kept alive so that its identity cannot be reused."""

    __slots__ = ("nbytes", "saved", "storage")

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self.storage = storage
        self.nbytes = storage.nbytes()
        self.saved: torch.UntypedStorage = storage.clone()  # type: ignore[no-untyped-call]  # torch leaves it untyped

    def changed(self) -> bool:
        """Compare size and bytes."""
        if self.storage.nbytes() != self.nbytes:
            return True
        return self.nbytes > 0 and not torch.equal(as_bytes(self.storage), as_bytes(self.saved))

    def restore(self) -> None:
        """Copy the bytes back; version counters of the tensors on it stay."""
        if not self.changed():
            return
        if self.storage.nbytes() != self.nbytes:
            self.storage.resize_(self.nbytes)
        if self.nbytes:
            self.storage.copy_(self.saved)


def as_bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    """Return the storage as a uint8 tensor of [nbytes], sharing memory."""
    with torch.no_grad():
        return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


class SavedTensor:
    """A tensor's own facts: which memory it views, whether it requires grad, and its `.grad`."""

    __slots__ = ("alias", "grad", "grad_fn", "requires_grad", "value")

    def __init__(self, value: torch.Tensor) -> None:
        self.value = value
        self.alias = value.detach()
        self.requires_grad = value.requires_grad
        self.grad_fn = value.grad_fn
        self.grad = value.grad if value.is_leaf else None

    def moved(self) -> bool:
        """Return whether the tensor views other memory, or views it otherwise, than before."""
        return (
            self.value.untyped_storage()._cdata != self.alias.untyped_storage()._cdata
            or self.value.shape != self.alias.shape
            or self.value.stride() != self.alias.stride()
            or self.value.storage_offset() != self.alias.storage_offset()
            or self.value.dtype != self.alias.dtype
        )

    def changed(self) -> bool:
        """Compare facts, not bytes (bytes belong to the storage)."""
        if self.moved() or self.value.requires_grad != self.requires_grad:
            return True
        return self.value.is_leaf and self.grad_fn is None and self.value.grad is not self.grad

    def rewindable(self) -> bool:
        """Return False if the tensor's place in the autograd graph has changed for good."""
        return self.value.grad_fn is self.grad_fn or self.grad_fn is None

    def restore(self) -> None:
        """Set memory, requires_grad and `.grad` back."""
        if self.value.grad_fn is not None and self.grad_fn is None:
            with suppress(RuntimeError):  # a view cannot be detached in place; `rewindable` has said so
                self.value.detach_()
        if self.moved():
            self.value.data = self.alias
        if self.value.is_leaf:
            if self.value.requires_grad != self.requires_grad:
                self.value.requires_grad_(self.requires_grad)
            if self.value.grad is not self.grad:
                self.value.grad = self.grad


def _save_fields(value: Any) -> SavedFields:
    fields = getattr(value, "__dict__", None)
    saved = _save_dict(fields) if isinstance(fields, dict) else None
    return SavedFields(value, saved, tuple((name, _slot(value, name)) for name in slot_names(type(value))))


def _save_function(value: types.FunctionType) -> SavedFunction:
    defaults = dict(value.__kwdefaults__ or {})
    return SavedFunction(value, value.__defaults__, defaults, _save_dict(vars(value)))


_SAVERS: Mapping[str, Callable[[Any], Saved]] = {
    "list": lambda value: SavedSequence(value, tuple(value)),
    "deque": lambda value: SavedSequence(value, tuple(value)),
    "set": lambda value: SavedSet(value, frozenset(value)),
    "dict": _save_dict,
    "object": _save_fields,
    "cell": lambda value: SavedCell(value, _cell_content(value)),
    "function": _save_function,
    "class": lambda value: SavedClass(value, tuple(class_attributes(value))),
    "buffer": lambda value: SavedBytes(value, value[:]),
    "array": lambda value: SavedBytes(value, value.copy()),
    "generator": lambda value: SavedGenerator(value, _generator_state(value)),
    "tensor": SavedTensor,
}


@dataclass(frozen=True, slots=True)
class Modes:
    """The process-wide switches of torch that a program may flip and forget."""

    grad: bool
    dtype: torch.dtype
    deterministic: bool

    @classmethod
    def now(cls) -> "Modes":
        """Record the present switches."""
        deterministic = torch.are_deterministic_algorithms_enabled()
        return cls(torch.is_grad_enabled(), torch.get_default_dtype(), deterministic)

    def restore(self) -> None:
        """Set the switches back, touching only those that moved."""
        if torch.is_grad_enabled() != self.grad:
            torch.set_grad_enabled(self.grad)
        if torch.get_default_dtype() != self.dtype:
            torch.set_default_dtype(self.dtype)
        if torch.are_deterministic_algorithms_enabled() != self.deterministic:
            torch.use_deterministic_algorithms(self.deterministic)


class Snapshot:
    """Everything the roots reach, saved; `rewind` puts it back, any number of times.

    entries: one `Saved` per visit of the walk that has content (same order), paths beside them.
    storages: by identity (`_cdata`).  obstacles: reasons why a reference run cannot be undone, empty when it can.
    """

    def __init__(self, reached: Walk) -> None:
        self.reached = reached
        self.entries: list[tuple[str, object, Saved]] = []
        self.storages: dict[int, SavedStorage] = {}
        self.index: dict[int, int] = {}
        self.obstacles: list[str] = [f"{path} cannot be rewound" for path in reached.forward_only]
        if reached.truncated:
            self.obstacles.append("the call reaches more objects than can be saved")
        for number, visit in enumerate(reached.visits):
            self.index[id(visit.value)] = number
            self._save(visit.path, visit.kind, visit.value)
        self.bindings = [SavedBinding(b, b.namespace.get(b.name, _MISSING)) for b in reached.bindings]
        self.random = RandomState.now()
        self.modes = Modes.now()

    @classmethod
    def take(cls, roots: Mapping[str, object]) -> "Snapshot":
        """Walk from the roots and save what is found."""
        return cls(walk(roots))

    def _save(self, path: str, kind: str, value: Any) -> None:
        if kind == "tensor":
            inner = unwrapped(value)
            if inner is not None:  # a value that outlived its transform: only the memory inside can change
                self._save(path, kind, inner)
                return
            if not has_storage(value):
                self.obstacles.append(f"{path} is a {type(value).__name__} of layout {value.layout}, not rewindable")
                return
            storage = value.untyped_storage()
            if storage._cdata not in self.storages:
                self.storages[storage._cdata] = SavedStorage(storage)
        saver = _SAVERS.get(kind)
        if saver is not None:
            self.entries.append((path, value, saver(value)))
        if kind in ("list", "dict", "deque", "set") and hasattr(value, "__dict__"):
            self.entries.append((path, value, _save_fields(value)))

    def changed_bindings(self) -> list[SavedBinding]:
        """Return the global names bound to something else now."""
        return [saved for saved in self.bindings if saved.changed()]

    def not_rewindable(self) -> list[str]:
        """Return what the last run changed beyond repair: places in the autograd graph."""
        return [
            f"{path} was changed in place inside the autograd graph"
            for path, _, saved in self.entries
            if isinstance(saved, SavedTensor) and not saved.rewindable()
        ]

    def rewind(self) -> None:
        """Put everything back as it was when the snapshot was taken."""
        self.modes.restore()
        with torch.no_grad():
            for saved_binding in self.bindings:
                if saved_binding.changed():
                    saved_binding.restore()
            for _, _, saved in self.entries:
                if isinstance(saved, SavedTensor) or saved.changed():
                    saved.restore()
            for storage in self.storages.values():
                storage.restore()
        self.random.restore()


def has_storage(value: torch.Tensor) -> bool:
    """Return whether the tensor is a strided view of plain bytes that can be saved."""
    try:
        return value.layout == torch.strided and value.device.type != "meta" and value.untyped_storage().nbytes() >= 0
    except (NotImplementedError, RuntimeError):
        return False
