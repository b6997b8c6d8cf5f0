"""What a program left behind, as plain data that does not change afterwards and can be compared with another run's.

Objects are numbered in the order in which they are met, so that two runs agree on the numbers exactly where they agree
on identity; memory is numbered in the same way.
"""

import collections
import enum
import functools
import inspect
import math
import re
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy
import torch
from torch.utils.hooks import RemovableHandle

Observed = tuple[Any, ...]
"""A node: its kind, then atoms and nodes."""

PROGRAM_MODULE = "fuzz_program"
# In either case: a program may write text in capitals. Short ones only where a text has them: programs write numbers.
_ADDRESS = re.compile(
    r"(?<=\bat )0x[0-9a-f]*|0x[0-9a-f]{6,}|(?<=<fuzz program )\d+(?=>)|at \d{12,}"
    # An address that a program has turned around or written in other letters: long, with digits and a letter.
    r"|(?<![.\w])(?=\d*[a-z])(?=(?:[a-z]*\d){6})[0-9a-z]{12,}",
    re.IGNORECASE,
)
_RECURSION = re.compile(r"(?<=maximum recursion depth exceeded)(?: (?:while|in) [a-zA-Z _]+)?")
_VERSION = re.compile(r"(?<= is at version )\d+(?=; expected version)")  # several writes are one (docs/limits.md)
_HISTORY = re.compile(r"\b\w+Backward\d*\b")  # compiled code has one step for a graph (docs/limits.md)
_ATOMS = (str, bytes, int, bool, complex, type(None), type(Ellipsis), type(NotImplemented), range, slice, torch.dtype)
_CONTAINERS = (dict, list, tuple, collections.deque)
_OPEN_MODULES = frozenset({PROGRAM_MODULE, "builtins", "collections", "types"})
"""Modules whose objects are described by their attributes; those of others are their text."""
_ITEMS_AT_MOST = 400
_ROOM = 100_000
"""How much is described at one moment: values, and for each sixteen letters of a text as much again."""


class TooLarge(Exception):
    """A program holds so much that describing it takes longer than the program."""


class Observer:
    """Describes values; one observer for everything that is observed at one moment."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._memory: dict[int, int] = {}
        self._alive: list[object] = []
        self._room = _ROOM

    def describe(self, value: Any) -> Observed:
        """Return a value as plain data; raises TooLarge."""
        self._room -= 1 + (len(value) // 16 if type(value) in (str, bytes) else 0)
        if self._room < 0:
            raise TooLarge
        if isinstance(value, enum.Enum):
            return ("member", type(value).__qualname__, value.name)
        if type(value) in (str, slice):
            return (type(value).__name__, without_addresses(str(value)))
        if type(value) in _ATOMS:
            return (type(value).__name__, value)
        if type(value) is float:
            return ("float", value)
        if isinstance(value, inspect.Signature):  # made again or not, nobody can tell
            return ("Signature", str(value))
        if type(value) in (torch.Size, torch.device, types.EllipsisType):
            return (type(value).__name__, str(value))
        if type(value) is tuple:
            return ("tuple", *(self.describe(part) for part in value))
        known = id(value) in self._numbers
        number = self._numbers.setdefault(id(value), len(self._numbers))
        if known:
            return ("again", number)
        self._alive.append(value)
        return (_kind(value), number, *self._content(value))

    def _content(self, value: Any) -> Iterable[Any]:
        for kinds, describe in _DESCRIPTIONS:
            if isinstance(value, kinds):
                return describe(self, value)
        return self._object(value)

    def fields(self, table: Any) -> Iterable[Observed]:
        """Return the entries of a mapping in its order."""
        entries = list(table.items())[:_ITEMS_AT_MOST]
        return [("entry", self.describe(key), self.describe(value)) for key, value in entries]

    def named(self, names: Iterable[tuple[str, Any]]) -> Iterable[Observed]:
        """Return named values in the order of their names."""
        return [("name", name, self.describe(value)) for name, value in names]

    def _object(self, value: Any) -> Iterable[Any]:
        if type(value).__module__ not in _OPEN_MODULES and not isinstance(value, _CONTAINERS):
            return [plain_text(value)]
        space = _namespace(value)
        parts: list[Any] = list(self.named(sorted(space.items(), key=str)))
        if isinstance(value, dict):
            parts += self.fields(dict.copy(value))
        elif isinstance(value, list | collections.deque):
            plain: Any = list if isinstance(value, list) else collections.deque
            parts += [self.describe(part) for part in plain.__iter__(value)]
        elif isinstance(value, tuple):
            parts += [self.describe(part) for part in tuple.__iter__(value)]
        elif type(value).__module__ != PROGRAM_MODULE and not space:
            parts.append(plain_text(value))
        return parts

    def tensor(self, value: torch.Tensor) -> Iterable[Any]:
        """Return dtype, shape, strides, gradient facts, memory and numbers of a tensor."""
        try:
            numbers, computed = value.detach().flatten().tolist(), value.grad_fn is not None
        except RuntimeError as error:  # a view that a write has made unusable
            yield ("unusable", plain_text(error)[:80])
            return
        yield (str(value.dtype), tuple(value.shape), value.stride() if value.numel() else ())
        yield (value.requires_grad, value.is_leaf, computed, value.is_inference())
        yield ("numbers", *numbers)
        if value.numel():
            place = self._memory.setdefault(value.untyped_storage().data_ptr(), len(self._memory))
            yield ("memory", place, value.storage_offset())
        if value.is_leaf and value.grad is not None:
            yield self.describe(value.grad)
        yield from self.named(sorted(value.__dict__.items()))

    def array(self, value: numpy.ndarray[Any, Any]) -> Iterable[Any]:
        """Return dtype, shape, memory and numbers of an array."""
        yield (str(value.dtype), value.shape, value.strides)
        yield ("numbers", *(value.flatten().tolist() if value.dtype.kind in "biuf" else [plain_text(value)]))
        if value.size:
            yield ("memory", self._memory.setdefault(value.__array_interface__["data"][0], len(self._memory)))

    def function(self, value: types.FunctionType) -> Iterable[Any]:
        """Return name, defaults and the content of the cells of a function of the program."""
        yield value.__qualname__
        if value.__module__ == PROGRAM_MODULE:
            yield self.describe(value.__defaults__)
            yield self.describe(value.__kwdefaults__)
            yield tuple(self.describe(_content_of(cell)) for cell in value.__closure__ or ())

    def kind(self, value: type) -> Iterable[Any]:
        """Return name and plain attributes of a class; only those of the program have a content."""
        yield value.__qualname__
        if value.__module__ == PROGRAM_MODULE and not issubclass(value, enum.Enum):
            attributes = [(name, part) for name, part in vars(value).items() if not name.startswith("__")]
            yield from self.named([(name, part) for name, part in attributes if not name.startswith("_abc")])

    def error(self, value: BaseException) -> Iterable[Any]:
        """Return an exception with its arguments, attributes, cause and context."""
        yield ("text", plain_text(value))
        yield ("args", *(self.describe(part) for part in value.args))
        yield ("cause", self.describe(value.__cause__))
        yield ("context", self.describe(value.__context__), value.__suppress_context__)
        yield from self.named(sorted(_namespace(value).items()))
        if isinstance(value, BaseExceptionGroup):
            yield tuple(self.describe(part) for part in value.exceptions)

    def module(self, value: torch.nn.Module) -> Iterable[Any]:
        """Return all attributes of a module in the order in which they were made."""
        for name, part in vars(value).items():
            if name.endswith("_hooks") or name.startswith(
                ("_forward_", "_backward_")
            ):  # keys count all hooks ever made
                part = list(part.values()) if isinstance(part, dict) else part
            yield ("name", name, self.describe(part))


def plain_text(value: object) -> str:
    """Return the text of a value without addresses, which no two runs share."""
    try:
        text = str(value) if isinstance(value, BaseException) else repr(value)
    except Exception as error:
        return f"no text: {type(error).__name__}"
    return without_addresses(text)


def without_addresses(text: str) -> str:
    """Return a text without what no two runs share.

    Addresses of objects, numbers of generated files, where a recursion grew too deep, names of steps of histories, how
    often a tensor was written to.
    """
    return _VERSION.sub("1", _HISTORY.sub("Backward", _RECURSION.sub("", _ADDRESS.sub("0x", text))))


def _kind(value: object) -> str:
    return type(value).__qualname__


def _namespace(value: object) -> dict[str, Any]:
    """Return the attributes of an object, those in slots too, without running code of its class."""
    try:
        space = dict(object.__getattribute__(value, "__dict__"))
    except (AttributeError, TypeError):
        space = {}
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ()) if kind.__module__ == PROGRAM_MODULE else ()
        for name in (slots,) if isinstance(slots, str) else slots:
            member = kind.__dict__.get(name)
            if isinstance(member, types.MemberDescriptorType):
                try:
                    space[name] = member.__get__(value, kind)
                except AttributeError:
                    continue
    return space


def _content_of(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return "an empty cell"


def _sorted_items(observer: Observer, value: Any) -> Iterable[Any]:
    return sorted((observer.describe(part) for part in value), key=repr)


_DESCRIPTIONS: tuple[tuple[Any, Callable[[Observer, Any], Iterable[Any]]], ...] = (
    (torch.Tensor, Observer.tensor),
    (numpy.ndarray, Observer.array),
    (torch.Generator, lambda observer, value: [hash(bytes(value.get_state().tolist()))]),
    (types.FunctionType, Observer.function),
    (types.MethodType, lambda observer, value: [value.__name__, observer.describe(value.__self__)]),
    (type, Observer.kind),
    (types.ModuleType, lambda observer, value: [value.__name__]),
    (functools.partial, lambda observer, value: [observer.describe((value.func, value.args, value.keywords))]),
    (types.GeneratorType, lambda observer, value: [value.__qualname__]),
    (types.CoroutineType, lambda observer, value: [value.__qualname__]),
    (RemovableHandle, lambda observer, value: []),
    (weakref.ref, lambda observer, value: [value() is None]),
    (BaseException, Observer.error),
    (torch.nn.Module, Observer.module),
    ((set, frozenset), _sorted_items),
)
"""Kinds of values with a description of their own, the first that fits; others are described by their attributes."""


def difference(expected: Any, actual: Any, tolerance: float, path: str = "") -> str:
    """Return where and how two observations differ, empty where they do not.

    tolerance: relative, and absolute for numbers below 1; 0 asks for equal bits, the sign of zero included.
    """
    if isinstance(expected, tuple) and isinstance(actual, tuple):
        for position, (left, right) in enumerate(zip(expected, actual, strict=False)):
            found = difference(left, right, tolerance, _deeper(path, expected, position))
            if found:
                return found if position or not isinstance(left, str) else _whole(path, expected, actual)
        return "" if len(expected) == len(actual) else _whole(path, expected, actual) + _only_in(expected, actual)
    if type(expected) is not type(actual) or not _same_atoms(expected, actual, tolerance):
        return _whole(path, expected, actual)
    return ""


def _whole(path: str, expected: Any, actual: Any) -> str:
    return f"{path}: {_short(actual)}, plain Python has {_short(expected)}"


def _only_in(expected: tuple[Any, ...], actual: tuple[Any, ...]) -> str:
    """Return the words for what the longer one has behind the end of the other."""
    longer, shorter = sorted((expected, actual), key=len, reverse=True)
    owner = "plain Python" if longer is expected else "only the compiled one"
    return f"; {owner} has {_short(longer[len(shorter)])} behind it"


def _deeper(path: str, node: Observed, position: int) -> str:
    if node[0] == "name" and position == 2:
        return f"{path}.{node[1]}"
    if node[0] == "entry" and position == 2:
        return f"{path}[{_short(node[1][-1])}]"
    if node[0] in ("tuple", "list") and position:
        return f"{path}[{position - (1 if node[0] == 'tuple' else 2)}]"
    return path


_NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


def _same_atoms(expected: Any, actual: Any, tolerance: float) -> bool:
    if isinstance(expected, float):
        return same_floats(expected, actual, tolerance)
    if isinstance(expected, str) and expected != actual and tolerance:
        left, right = _NUMBER.findall(expected), _NUMBER.findall(actual)
        close = all(same_floats(float(a), float(b), tolerance) for a, b in zip(left, right, strict=False))
        return close and len(left) == len(right) and _NUMBER.sub("", expected) == _NUMBER.sub("", actual)
    if isinstance(expected, slice | complex | bytes | str | int | range | None | torch.dtype):
        return repr(expected) == repr(actual)
    return bool(expected == actual)


def same_floats(expected: float, actual: float, tolerance: float) -> bool:
    """Return whether two numbers are equal, bit by bit without a tolerance; NaN is NaN."""
    if math.isnan(expected) or math.isnan(actual):
        return math.isnan(expected) and math.isnan(actual)
    if not tolerance:
        return expected == actual and math.copysign(1, expected) == math.copysign(1, actual)
    return expected == actual or abs(expected - actual) <= tolerance * max(1.0, abs(expected))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 90 else text[:87] + "..."
