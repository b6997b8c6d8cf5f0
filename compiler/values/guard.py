"""Guard: a frozen condition on a Source; what each kind demands, and the facts it compares with.

How a kind is checked and told to people is its row in `frontend/guards/guard_rules.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import torch

from ..base.origin import Origin
from .source import Source


class GuardKind(Enum):
    """What a guard demands of the value at its source, with the type of `Guard.expected`."""

    TYPE = auto()  # its exact type (a class)
    IDENTITY = auto()  # it is this object
    EQUALS = auto()  # it has the type of this constant and equals it; zeros by sign, NaN to NaN
    LENGTH = auto()  # its length (int)
    KEYS = auto()  # its keys, in order (a tuple)
    HAS_KEY = auto()  # it has this key
    LACKS_KEY = auto()  # it does not have this key
    EMPTY_ITEMS = auto()  # what it has under each of these names (a tuple) is false
    MEMBERS = auto()  # it is a set of these members (a frozenset)
    MEMBER = auto()  # what its classes have under a name (Member)
    ANSWER = auto()  # what calling it gives (Answer)
    CODE = auto()  # a function of this code (a code object)
    TENSOR = auto()  # a tensor of these metadata (TensorFacts)
    TRUTH = auto()  # its truth value (bool)
    HAS_ATTRIBUTE = auto()  # it has an attribute of this name
    LACKS_ATTRIBUTE = auto()  # it has no attribute of this name
    SAME_AS = auto()  # it is the object at the other source
    DISTINCT = auto()  # the objects at the other sources differ
    STORAGES = auto()  # which of the tensors at the other sources share storage (`storage_pattern`)
    STATE = auto()  # global state: (function, what it returns)
    DATA = auto()  # what computing on its data, and that of the other values, gives (DataQuestion)
    EXPRESSION = auto()  # a Python expression over {0}, the value, and {1}, {2}, ..., the other values


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """The metadata of a tensor that a capture relied on; a size of None may vary.

    stride: in elements; None for layouts without strides.
    """

    kind: type
    dtype: torch.dtype
    device: torch.device
    shape: tuple[int | None, ...]
    stride: tuple[int | None, ...] | None
    requires_grad: bool
    bits: tuple[bool, bool, bool]  # conjugate, negative, inference
    leaf: bool = True

    def __str__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        gradient = ", requires_grad" if self.requires_grad else ""
        return f"{self.kind.__name__} {dtype}[{sizes}] on {self.device}{gradient}"


ABSENT = type("Absent", (), {"__repr__": lambda self: "nothing"})()
PLAIN = type("Plain", (), {"__repr__": lambda self: "a plain value"})()


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """What looking a name up in the classes of an MRO gave: ABSENT, PLAIN (no descriptor), or this very object.

    after: look only behind this class, as `super()` does; None for all of them.
    """

    name: str
    after: type | None
    found: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Member) and self._identities() == other._identities()

    def __hash__(self) -> int:
        return hash(self._identities())

    def _identities(self) -> tuple[str, int, int]:
        return (self.name, id(self.after), id(self.found))


def look_up(kind: type, name: str, after: type | None = None) -> tuple[type | None, object]:
    """Return (owner, raw attribute) of the first class in the MRO that has the name; (None, ABSENT) if none.

    Raises ValueError if `after` is not in the MRO.
    """
    mro = kind.__mro__
    start = mro.index(after) + 1 if after is not None else 0
    for owner in mro[start:]:
        if name in owner.__dict__:
            return owner, owner.__dict__[name]
    return None, ABSENT


def member_found(raw: object) -> object:
    """Return what a guard expects of a raw attribute: plain data is guarded where it is read, by its value."""
    by_identity = raw is ABSENT or raw is None or isinstance(raw, bool) or hasattr(type(raw), "__get__")
    return raw if by_identity else PLAIN


@dataclass(frozen=True, eq=False)
class Answer:
    """What calling a function with known arguments gave."""

    args: tuple[object, ...]
    kwargs: dict[str, object]
    given: object

    def found(self, function: Callable[..., object]) -> object:
        """Return what it gives now."""
        return function(*self.args, **self.kwargs)

    def still_given(self, function: Callable[..., object]) -> bool:
        """Return whether it gives the same now: this object, or an equal number or text of the same type."""
        answer, before = self.found(function), self.given
        is_scalar = type(answer) is type(before) and type(answer) in _SCALARS
        return answer is before or (is_scalar and repr(answer) == repr(before))


_SCALARS = (int, float, complex, str, bytes)


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A condition that must hold at entry for the compiled code to be used.

    source: None for global state.  expected: what the kind needs.  others: for relations between sources.
    """

    source: Source | None
    kind: GuardKind
    expected: Any  # its type is the kind's business
    origin: Origin | None = None
    others: tuple[Source, ...] = ()

    def key(self) -> tuple[object, ...]:
        """Return what makes two guards the same check."""
        expected = self.expected
        try:
            hash(expected)
        except TypeError:
            expected = id(expected)
        return (self.source, self.kind, type(expected), repr(expected) if type(expected) is float else expected)


def without_finaliser(name: str) -> str:
    """Return the expression that says of a namespace that what it has under a name, if anything, has no finaliser."""
    return f"not hasattr(type({{0}}.get({name!r})), '__del__')"


def storage_pattern(*tensors: torch.Tensor) -> tuple[int, ...]:
    """Return for each tensor the position of the first tensor that uses the same storage."""
    first: dict[int, int] = {}
    return tuple(
        first.setdefault(tensor.untyped_storage().data_ptr() or id(tensor), position)
        for position, tensor in enumerate(tensors)
    )
