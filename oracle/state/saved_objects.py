"""Python objects saved before a call: each knows whether its content differs now, and puts the saved one back.

Objects are never copied: a container, object, cell, class or global name keeps its identity, and its content is put
back without running user code.
"""

import copy
import hashlib
import random
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from operator import is_
from typing import Any, Protocol, cast

import numpy
import torch

from .children import class_attributes, is_mark, own_dict, slot_names
from .kinds import ATOMS, count_from, place_of_count
from .plain_contents import entries_of, items_of, plain_base
from .saved_library_objects import save_library_object
from .walk import Binding

MISSING = object()
"""The content of an empty cell, of a slot without a value and of a name that is not bound."""


class SavedState(Protocol):
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
    left, right = list(first), list(second)
    return len(left) == len(right) and all(map(same, left, right))


@dataclass(frozen=True, slots=True)
class SavedSequence:
    """A list or deque."""

    value: Any
    items: tuple[object, ...]

    def changed(self) -> bool:
        """Compare item by item."""
        return not _same_items(items_of(self.value), self.items)

    def restore(self) -> None:
        """Refill the container with its old items."""
        base = plain_base(self.value)
        base.clear(self.value)
        base.extend(self.value, self.items)


_ORDERS_TRIED = 64


@dataclass(frozen=True, slots=True)
class SavedSet:
    """A mutable set, its order and the size of its table included as far as a new one can have them."""

    value: Any
    items: tuple[object, ...]
    size: int

    def changed(self) -> bool:
        """Compare members."""
        return frozenset(items_of(self.value)) != frozenset(self.items)

    def restore(self) -> None:
        """Exchange the members; a table that then gives another order is made anew.

        Where two members want one place, the one that is added first gets it.
        """
        if not isinstance(self.value, set):
            return
        set.difference_update(self.value, set(self.value).difference(self.items))
        set.update(self.value, self.items)
        order, misplaced = list(self.items), self._misplaced()
        if misplaced is None and set.__sizeof__(self.value) == self.size:
            return
        for _ in range(_ORDERS_TRIED):
            set.clear(self.value)
            for item in order:
                set.add(self.value, item)
            misplaced = self._misplaced()
            if misplaced is None:
                return
            instead, wanted = misplaced
            order = [item for item in order if item is not wanted]
            order.insert(next(n for n, item in enumerate(order) if item is instead), wanted)

    def _misplaced(self) -> tuple[object, object] | None:
        """Return the first member that lies elsewhere than before, and what lay there; None if none does."""
        pairs = zip(set.__iter__(self.value), self.items, strict=False)  # of a class whose `__eq__` lies, any number
        return next(((now, before) for now, before in pairs if now is not before), None)


@dataclass(frozen=True, slots=True)
class SavedDict:
    """A dict of any subclass, its order included."""

    value: Any
    keys: tuple[object, ...]
    items: tuple[object, ...]

    def changed(self) -> bool:
        """Compare keys in order and values; identity first, because this is asked of every object in reach."""
        value = self.value
        if type(value) is OrderedDict and not self.keys and not value:  # tables of hooks, several in every module
            return False
        plain = type(value) is dict and len(value) == len(self.keys)  # another class has an order of its own
        if plain and all(map(is_, value, self.keys)) and all(map(is_, value.values(), self.items)):
            return False
        now = [(key, item) for key, item in entries_of(value) if not is_mark(key)]
        same_keys = _same_items((key for key, _ in now), self.keys)
        return not (same_keys and _same_items((item for _, item in now), self.items))

    def restore(self) -> None:
        """Refill through dict's own methods, so that a subclass's hooks do not run."""
        base = plain_base(self.value)
        marks = [(key, item) for key, item in entries_of(self.value) if is_mark(key)]
        base.clear(self.value)
        for key, item in (*zip(self.keys, self.items, strict=True), *marks):
            base.__setitem__(self.value, key, item)


def _save_dict(value: Any) -> SavedDict:
    kept = [(key, item) for key, item in entries_of(value) if not is_mark(key)]
    return SavedDict(value, tuple(key for key, _ in kept), tuple(item for _, item in kept))


@dataclass(frozen=True, slots=True)
class SavedWeakly:
    """A dictionary or set of weak references: references and what is held with them, in order."""

    value: Any
    items: tuple[object, ...]

    def changed(self) -> bool:
        """Compare references and what is held with them; those of the dead have gone by themselves."""
        return not _same_items(_weak_items(self.value), self.items)

    def restore(self) -> None:
        """Refill the container, but for what has died since."""
        items, inside = self.items, self.value.data
        inside.clear()
        if isinstance(inside, set):
            inside.update(item for item in items if cast("weakref.ref[object]", item)() is not None)
            return
        for key, item in zip(items[::2], items[1::2], strict=True):
            reference = key if isinstance(key, weakref.ref) else item
            if cast("weakref.ref[object]", reference)() is not None:
                inside[key] = item


def _weak_items(value: Any) -> tuple[object, ...]:
    """Return what a container of weak references has inside: references, and keys or values of a dictionary."""
    inside = value.data
    return tuple(inside) if isinstance(inside, set) else tuple(part for item in inside.items() for part in item)


@dataclass(frozen=True, slots=True)
class SavedFields:
    """An object's `__dict__` and slots."""

    value: Any
    fields: SavedDict | None
    slots: tuple[tuple[str, object], ...]
    kind: type

    def changed(self) -> bool:
        """Compare the class, and attribute by attribute."""
        if type(self.value) is not self.kind:
            return True
        if self.fields is not None and self.fields.changed():
            return True
        slots = self.slots
        return bool(slots) and not _same_items((_slot(self.value, name) for name, _ in slots), (it for _, it in slots))

    def restore(self) -> None:
        """Restore the class and the attributes without running `__setattr__`."""
        if type(self.value) is not self.kind:
            object.__setattr__(self.value, "__class__", self.kind)
        if self.fields is not None and self.fields.changed():
            self.fields.restore()
        for name, item in self.slots:
            if _slot(self.value, name) is item:
                continue
            with suppress(AttributeError, TypeError):  # read-only slots of C types never changed
                if item is MISSING:
                    object.__delattr__(self.value, name)
                else:
                    object.__setattr__(self.value, name, item)


def _slot(value: object, name: str) -> object:
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return MISSING


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
        if self.content is not MISSING:
            self.value.cell_contents = self.content
        elif _cell_content(self.value) is not MISSING:
            del self.value.cell_contents


def _cell_content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


@dataclass(frozen=True, slots=True)
class SavedFunction:
    """A function's code, defaults and attributes."""

    value: types.FunctionType
    code: types.CodeType
    defaults: tuple[object, ...] | None
    keyword_defaults: dict[str, object] | None
    attributes: SavedDict

    def changed(self) -> bool:
        """Compare what calls read."""
        return (
            self.value.__code__ is not self.code
            or self.value.__defaults__ is not self.defaults
            or (self.value.__kwdefaults__ or None) != (self.keyword_defaults or None)
            or self.attributes.changed()
        )

    def restore(self) -> None:
        """Restore code, defaults and attributes."""
        if self.value.__code__ is not self.code:
            self.value.__code__ = self.code
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
        """Restore changed attributes and drop new ones, without a metaclass's own `__setattr__`."""
        now = dict(class_attributes(self.value))
        saved = dict(self.attributes)
        for name in now.keys() - saved.keys():
            type.__delattr__(self.value, name)
        for name, item in saved.items():
            if name not in now or now[name] is not item:
                type.__setattr__(self.value, name, item)


class KeptContents:
    """What names are bound to: a count that has been taken from is exchanged for one at the old place."""

    def __init__(self) -> None:
        self._places: dict[int, str] = {}
        self._exchanged: dict[int, object] = {}

    def keep(self, content: object) -> None:
        """Note where a count is."""
        place = place_of_count(content)
        if place is not None:
            self._places[id(content)] = place

    def current(self, content: object) -> object:
        """Return what stands for what a name was bound to."""
        return self._exchanged.get(id(content), content)

    def moved(self, content: object) -> bool:
        """Return whether a count, or what stands for it, has been taken from."""
        place = self._places.get(id(content))
        return place is not None and place_of_count(self.current(content)) != place

    def put_back(self, content: object) -> object:
        """Return what a name is to be bound to."""
        if self.moved(content):
            self._exchanged[id(content)] = count_from(self._places[id(content)])
        return self.current(content)


@dataclass(frozen=True, slots=True)
class SavedBinding:
    """A global name, or the attribute of a user's module."""

    binding: Binding
    content: object
    kept: KeptContents

    def changed(self) -> bool:
        """Compare what the name is bound to."""
        now = self.binding.namespace.get(self.binding.name, MISSING)
        return not same(now, self.kept.current(self.content)) or self.kept.moved(self.content)

    def restore(self) -> None:
        """Bind or unbind the name as it was."""
        if self.content is MISSING:
            self.binding.namespace.pop(self.binding.name, None)
        else:
            self.binding.namespace[self.binding.name] = self.kept.put_back(self.content)


@dataclass(frozen=True, slots=True)
class SavedBytes:
    """A bytearray, array.array or NumPy array, by content; whether an array may be written."""

    value: Any
    content: Any
    writeable: bool = True

    def changed(self) -> bool:
        """Compare bytes (NaN equals itself)."""
        if isinstance(self.value, numpy.ndarray):
            if self.value.flags.writeable != self.writeable:
                return True
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
            if self.value.tobytes() != self.content.tobytes():
                numpy.copyto(self.value, self.content)
            if self.value.flags.writeable != self.writeable:
                self.value.flags.writeable = self.writeable
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
        """Restore the state."""
        if isinstance(self.value, numpy.random.Generator):
            self.value.bit_generator.state = self.state
        elif isinstance(self.value, random.Random):
            self.value.setstate(self.state)
        else:
            self.value.set_state(self.state)  # torch's, and NumPy's older kind


def generator_digest(value: Any) -> str:
    """Return the state of a random generator as a few letters."""
    state = _generator_state(value)
    content = bytes(state.tolist()) if isinstance(state, torch.Tensor) else repr(state).encode()
    return hashlib.blake2s(content, digest_size=6).hexdigest()


def _generator_state(value: Any) -> Any:
    if isinstance(value, numpy.random.Generator):
        return copy.deepcopy(value.bit_generator.state)
    if isinstance(value, random.Random):
        return value.getstate()
    return value.get_state()


def save_fields(value: Any) -> SavedFields:
    """Save the attributes of an object: its `__dict__` and its slots."""
    fields = own_dict(value)
    saved = None if fields is None else _save_dict(fields)
    return SavedFields(value, saved, tuple((name, _slot(value, name)) for name in slot_names(type(value))), type(value))


def _save_function(value: types.FunctionType) -> SavedFunction:
    defaults = dict(value.__kwdefaults__ or {})
    return SavedFunction(value, value.__code__, value.__defaults__, defaults, _save_dict(vars(value)))


_SAVERS: Mapping[str, Callable[[Any], SavedState]] = {
    "list": lambda value: SavedSequence(value, tuple(items_of(value))),
    "deque": lambda value: SavedSequence(value, tuple(items_of(value))),
    "set": lambda value: SavedSet(value, tuple(items_of(value)), plain_base(value).__sizeof__(value)),
    "dict": _save_dict,
    "object": save_fields,
    "weak": lambda value: SavedWeakly(value, _weak_items(value)),
    "cell": lambda value: SavedCell(value, _cell_content(value)),
    "function": _save_function,
    "class": lambda value: SavedClass(value, tuple(class_attributes(value))),
    "buffer": lambda value: SavedBytes(value, value[:]),
    "array": lambda value: SavedBytes(value, numpy.array(value), bool(value.flags.writeable)),
    "library": save_library_object,
    "generator": lambda value: SavedGenerator(value, _generator_state(value)),
}


def save_bindings(bindings: Iterable[Binding]) -> list[SavedBinding]:
    """Save what global names are bound to."""
    kept = KeptContents()
    saved = [SavedBinding(binding, binding.namespace.get(binding.name, MISSING), kept) for binding in bindings]
    for each in saved:
        kept.keep(each.content)
    return saved


def save_object(kind: str, value: Any) -> SavedState | None:
    """Save an object's own content; kind: its word in the walk.  None for a kind without content of its own."""
    saver = _SAVERS.get(kind)
    return saver(value) if saver is not None else None
