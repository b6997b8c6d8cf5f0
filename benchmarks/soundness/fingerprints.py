"""What a program left behind as a flat list of plain data, so that two plays of it can be compared bit by bit.

Written apart from the judge's own description of state, which is on trial here.
"""

import collections
import hashlib
import pathlib
import re
import types
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import numpy
import torch

MOST_ENTRIES = 20_000
_PLAIN = (str, bytes, int, bool, complex, float, type(None), range, slice, torch.dtype, torch.device, torch.layout)
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodType)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_HOOKS = ("_hooks", "_hooks_with_kwargs", "_hooks_always_called")


class Fingerprints:
    """Flattens values; one object for everything of one play, so that shared objects and memory are seen."""

    def __init__(self) -> None:
        self._objects: dict[int, int] = {}
        self._memory: dict[int, int] = {}
        self._alive: list[object] = []
        self._entries = 0

    def of(self, value: Any, path: str = "") -> Iterator[tuple[str, object]]:
        """Yield `(path, plain data)` for a value and all that it holds."""
        self._entries += 1
        if self._entries > MOST_ENTRIES:
            return
        if isinstance(value, (*_PLAIN, pathlib.PurePath)):  # a path keeps its text once it was asked for it
            yield path, _ADDRESS.sub("", repr(value))
            return
        if isinstance(value, _NAMED):
            yield path, getattr(value, "__qualname__", getattr(value, "__name__", "a module"))
            return
        if id(value) in self._objects:
            yield path, f"object {self._objects[id(value)]} again"
            return
        if type(value) is not tuple:
            self._objects[id(value)] = len(self._objects)
            self._alive.append(value)
        yield path, type(value).__qualname__
        yield from self._content(value, path)

    def _content(self, value: Any, path: str) -> Iterator[tuple[str, object]]:
        if isinstance(value, torch.Tensor):
            yield from self._tensor(value, path)
        elif isinstance(value, numpy.ndarray):
            yield path, (str(value.dtype), value.shape, hashlib.blake2s(value.tobytes()).hexdigest())
        elif isinstance(value, torch.Generator):
            yield path, hashlib.blake2s(bytes(value.get_state().tolist())).hexdigest()
        elif isinstance(value, numpy.random.Generator):
            yield path, repr(value.bit_generator.state)
        elif isinstance(value, BaseException):
            yield path, str(value)
        elif isinstance(value, weakref.ReferenceType):
            yield path, value() is None
        elif issubclass(type(value), Mapping):  # its `__class__` may be code of the program's
            for key, item in value.items():
                yield from self.of(item, f"{path}[{key!r}]" if isinstance(key, _PLAIN) else f"{path}[...]")
        elif isinstance(value, (list, tuple, collections.deque)):
            for number, item in enumerate(value):
                yield from self.of(item, f"{path}[{number}]")
        elif isinstance(value, (set, frozenset)):
            yield path, sorted(repr(one) for one in value if isinstance(one, _PLAIN))
        else:
            yield from self._fields(value, path)

    def _fields(self, value: Any, path: str) -> Iterator[tuple[str, object]]:
        fields = getattr(value, "__dict__", {})
        for name, item in list(fields.items()) if isinstance(fields, dict) else ():
            hooks = name.endswith(_HOOKS) and isinstance(item, dict)  # keys count all hooks that were ever made
            yield from self.of(list(item.values()) if hooks else item, f"{path}.{name}")
        for kind in type(value).__mro__:
            slots = vars(kind).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                    yield from self.of(getattr(value, name), f"{path}.{name}")

    def _tensor(self, value: torch.Tensor, path: str) -> Iterator[tuple[str, object]]:
        if value.is_nested:
            for number, part in enumerate(value.unbind()):
                yield from self.of(part, f"{path}[{number}]")
            return
        stride = value.stride() if value.layout == torch.strided else ()
        yield path, (str(value.dtype), tuple(value.shape), stride, str(value.device), value.is_inference())
        yield path, (value.requires_grad, *_history(value), value.is_conj(), value.is_neg())
        if not value.is_meta:
            yield f"{path} values", _digest(value)
        if value.layout == torch.strided and not value.is_meta and value.numel():
            yield from self._place(value, path)
        if _history(value)[0] and value.grad is not None:
            yield from self.of(value.grad, f"{path}.grad")
        for name, item in value.__dict__.items():
            yield from self.of(item, f"{path}.{name}")

    def _place(self, value: torch.Tensor, path: str) -> Iterator[tuple[str, object]]:
        try:
            place = value.untyped_storage().data_ptr()
        except (NotImplementedError, RuntimeError):  # a subclass that has no memory of its own
            return
        number = self._memory.setdefault(place, len(self._memory))
        yield path, f"memory {number} from {value.storage_offset()}"


def _digest(value: torch.Tensor) -> str:
    """Return the bits of a tensor as letters; what cannot be read gives the reason."""
    try:
        with torch.no_grad():
            plain = value.detach()
            plain = plain if plain.layout == torch.strided else plain.to_dense()
            plain = plain.int_repr() if plain.is_quantized else plain
            content = plain.resolve_conj().resolve_neg().clone().contiguous().reshape(-1).view(torch.uint8)
            return hashlib.blake2s(bytes(content.numpy().tobytes())).hexdigest()
    except Exception as error:  # a subclass may refuse anything
        return type(error).__name__


def first_difference(expected: list[object], actual: list[object]) -> str:
    """Return where two plays of one program differ, empty where they do not."""
    for one, other in zip(expected, actual, strict=False):
        if one != other:
            return f"judged {other!r:.250}, plain {one!r:.250}"
    if len(expected) != len(actual):
        return f"judged {len(actual)} entries, plain {len(expected)}"
    return ""


def _history(value: torch.Tensor) -> tuple[object, str]:
    try:
        return value.is_leaf, type(value.grad_fn).__name__
    except RuntimeError as error:  # one of several views whose memory was written to
        return None, str(error)
