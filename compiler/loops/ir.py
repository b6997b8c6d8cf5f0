"""The loop-level program: buffers, and the steps that fill them in order.

A step is a `Loop` (our code) or an `Extern` (an ATen call on whole tensors; a view is one that writes no memory).
Lowering makes one loop per ATen node; fusion only ever merges loops, so every stage speaks this language.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import torch

from ..base.nested import leaves
from ..symbolic.expr import Expr, Symbol
from ..symbolic.index_space import product
from ..symbolic.symbolic_sizes import Extent
from .body import Access, Scalar, walk


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor in memory.  shape, strides: in elements, as externs and outputs need them to keep eager's strides."""

    name: str
    dtype: torch.dtype
    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    offset: int = 0

    @property
    def numel(self) -> Extent:
        """How many elements the tensor has."""
        return product(self.shape)

    @property
    def span(self) -> Extent:
        """How many elements of storage the strides reach over."""
        if not self.numel:
            return 0
        result: Extent = 1
        for size, stride in zip(self.shape, self.strides, strict=True):
            result = result + (size - 1) * stride
        return result


@dataclass(frozen=True, slots=True, eq=False)
class LoopStore:
    """One element written per iteration: at `access`, the value.

    whole: False where other loops write the rest of the buffer (the pieces of a `cat`).
    """

    access: Access
    value: Scalar
    whole: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """Nested loops over `kept` and, inside, `reduced` variables, that store values.

    A store whose value depends on a reduced variable happens for every point; one that does not, once per kept point.
    A `reduce` scalar combines its argument over all reduced points of one kept point; a `scan` over those so far, and
    a loop with one has a single reduced variable, whose points are in order.
    reads, writes: the names of buffers that the loop loads from and stores to.
    """

    name: str
    kept: tuple[Symbol, ...]
    reduced: tuple[Symbol, ...]
    stores: tuple[LoopStore, ...]
    origins: tuple[str, ...] = ()
    reads: frozenset[str] = field(init=False)
    writes: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        # asked very often while scheduling
        object.__setattr__(self, "reads", frozenset(load.access.buffer for load in self.loads()))
        object.__setattr__(self, "writes", frozenset(store.access.buffer for store in self.stores))

    def scalars(self) -> Iterator[Scalar]:
        """Yield every scalar of the body once, arguments first."""
        return walk(store.value for store in self.stores)

    def loads(self) -> Iterator[Scalar]:
        """Yield every load of the body once."""
        return (scalar for scalar in self.scalars() if scalar.name == "load")

    @property
    def reduces(self) -> bool:
        """Whether some value is a reduction (possibly over a single point)."""
        return any(scalar.name == "reduce" for scalar in self.scalars())

    @property
    def scans(self) -> bool:
        """Whether some value is a result so far, so that the reduced points are in order."""
        return any(scalar.name == "scan" for scalar in self.scalars())


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference, inside the arguments of an `Extern`, to a tensor by name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Extern:
    """An ATen call on whole tensors; `args` and `kwargs` hold `Ref`s for tensors, nested in lists and tuples.

    results: names of the tensors it gives, one per output (None for an output that is not a tensor).
    dtypes: what its shape rule promises of each result; empty for calls whose results are not compared with it.
    ordered: True where the call must keep its place among other ordered calls (random draws, mutation).
    alias_of: the tensors whose memory the results may share (views).  why: there are no loops for it, in words.
    """

    name: str
    target: Callable[..., object]
    args: tuple[object, ...]
    kwargs: dict[str, object]
    results: tuple[str | None, ...]
    single: bool
    ordered: bool = False
    mutates: tuple[str, ...] = ()
    alias_of: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    dtypes: tuple[torch.dtype | None, ...] = ()
    why: str = ""

    @property
    def reads(self) -> frozenset[str]:
        """The names of tensors in the arguments."""
        return frozenset(refs_in((self.args, self.kwargs)))

    @property
    def writes(self) -> frozenset[str]:
        """The names of tensors it makes or changes."""
        return frozenset(name for name in self.results if name) | frozenset(self.mutates)


@dataclass(frozen=True, slots=True)
class SymbolicNumber:
    """A number computed from dynamic sizes, inside the arguments of an `Extern`; text: Python over `names`."""

    text: str
    names: tuple[str, ...]

    def at(self, point: Mapping[str, int | float]) -> float:
        """Return the number for sizes by name."""
        return float(eval(self.text, {"math": math, **point}))


def refs_in(value: object) -> Iterator[str]:
    """Return the names of all tensors referred to in nested arguments."""
    return (leaf.name for leaf in leaves(value) if isinstance(leaf, Ref))


Step = Loop | Extern
CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True, eq=False)
class LoopProgram:
    """A whole graph: inputs by name, buffers by name, steps in order, outputs.

    outputs: nested as the graph's outputs were, with `Ref`s for tensors.
    constants: tensors that the graph holds itself, by name.
    sizes: the names of dynamic sizes, which are given behind the inputs in this order.  fractions: those that are
    floats; no loop sees them.  device: where the tensors are that loops read and write.
    output_names: of the tensors that the caller gets.
    """

    inputs: tuple[str, ...]
    buffers: dict[str, Buffer]
    steps: tuple[Step, ...]
    outputs: tuple[object, ...]
    constants: dict[str, torch.Tensor] = field(default_factory=dict)
    sizes: tuple[str, ...] = ()
    fractions: frozenset[str] = frozenset()
    device: torch.device = CPU
    output_names: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Look for the names once: every tensor is asked whether it is one of them."""
        object.__setattr__(self, "output_names", frozenset(refs_in(self.outputs)))

    @property
    def counts(self) -> tuple[str, ...]:
        """The dynamic sizes that are whole numbers, in order."""
        return tuple(name for name in self.sizes if name not in self.fractions)


def index_symbols(access: Access) -> frozenset[Symbol]:
    """Return the variables an access depends on, looked-up ones left out."""
    from_index: set[Symbol] = set()
    for part in access.index:
        for atom, _ in part.terms:
            from_index |= {atom} if isinstance(atom, Symbol) else _inner(atom.value)
    return frozenset(from_index - set(access.looked_up))


def _inner(value: Expr) -> set[Symbol]:
    symbols: set[Symbol] = set()
    for atom, _ in value.terms:
        symbols |= {atom} if isinstance(atom, Symbol) else _inner(atom.value)
    return symbols
