"""Loop bodies: a shared graph of scalar values, each made once.

A `Scalar` is a value of one loop iteration.  Besides the operations of `scalar_ops` there are seven forms:
`load` (an element of a buffer), `constant`, `index` (an index expression as a number), `cast`, `checked` (an integer
that must be a place in a dimension of given size), `reduce` (a reduction over the loop's reduced variables, whose
result belongs to the kept variables only) and `scan` (at each reduced point, the reduction of all up to and with it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch

from ..symbolic.expr import Expr, Symbol, as_expr, substitute
from ..symbolic.symbolic_sizes import Extent, Size
from .scalar_ops import SCALAR_OPS, WrongDtype


@dataclass(frozen=True, slots=True)
class Access:
    """One element of a buffer: an index expression per dimension.

    looked_up: [number of the load's arguments], variables inside `index` that stand for the values of the load's
    arguments, in order; each is checked against `0 <= value < size` before it is used.
    """

    buffer: str
    index: tuple[Expr, ...]
    looked_up: tuple[Symbol, ...] = ()


Detail = Access | Expr | Size | float | int | bool | str | None


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A value inside a loop body; identity is equality, `ScalarBuilder` makes equal ones once.

    origin: the user's line and the operator that it was first made for, as text for comments.
    """

    name: str
    args: tuple[Scalar, ...]
    dtype: torch.dtype
    detail: Detail = None
    origin: str = ""

    @property
    def access(self) -> Access:
        """The place a `load` reads."""
        if not isinstance(self.detail, Access):
            raise TypeError(f"{self.name} reads no buffer")
        return self.detail

    @property
    def expression(self) -> Expr:
        """The expression of an `index`."""
        if not isinstance(self.detail, Expr):
            raise TypeError(f"{self.name} holds no index expression")
        return self.detail

    @property
    def kind(self) -> str:
        """The kind of a `reduce` or a `scan`."""
        if not isinstance(self.detail, str):
            raise TypeError(f"{self.name} is not a reduction")
        return self.detail


def is_uniform(scalar: Scalar) -> bool:
    """Return whether a value is the same wherever the loop stands: a number, or one computed from dynamic sizes."""
    if scalar.name == "cast":
        return is_uniform(scalar.args[0])
    return scalar.name == "constant" or (scalar.name == "index" and not scalar.expression.terms)


class ScalarBuilder:
    """Makes scalars, each distinct one once; lives no longer than the function that uses it.

    origin: of what it makes, where nothing else is said.
    """

    def __init__(self, origin: str = "") -> None:
        self._origin = origin
        self._made: dict[tuple[object, ...], Scalar] = {}

    def make(
        self, name: str, args: tuple[Scalar, ...], dtype: torch.dtype, detail: Detail = None, origin: str = ""
    ) -> Scalar:
        """Return the scalar of these parts."""
        # repr tells -0.0 from 0.0, True from 1, and makes NaN equal to itself
        key = (name, tuple(map(id, args)), dtype, repr(detail) if isinstance(detail, float | int) else detail)
        scalar = self._made.get(key)
        if scalar is None:
            scalar = self._made[key] = Scalar(name, args, dtype, detail, origin or self._origin)
        return scalar

    def load(
        self,
        buffer: str,
        index: tuple[Expr, ...],
        dtype: torch.dtype,
        looked_up: tuple[tuple[Symbol, Scalar], ...] = (),
    ) -> Scalar:
        """Return the element of a buffer at an index, some of whose parts may be looked up."""
        access = Access(buffer, index, tuple(symbol for symbol, _ in looked_up))
        return self.make("load", tuple(value for _, value in looked_up), dtype, access)

    def constant(self, value: float | int | bool | Size, dtype: torch.dtype) -> Scalar:
        """Return a constant, already of its dtype's kind; a dynamic size is a number that the loop is given."""
        if isinstance(value, Size):
            return self.cast(self.index(as_expr(value), torch.int64), dtype)
        kind: type = bool if dtype == torch.bool else float if dtype.is_floating_point else int
        return self.make("constant", (), dtype, kind(value))

    def index(self, value: Expr, dtype: torch.dtype) -> Scalar:
        """Return the value of an index expression."""
        return self.make("index", (), dtype, value)

    def checked(self, value: Scalar, size: Extent) -> Scalar:
        """Return an integer that stops the program unless `0 <= value < size`."""
        return self.make("checked", (value,), value.dtype, size)

    def cast(self, value: Scalar, dtype: torch.dtype) -> Scalar:
        """Return value converted to dtype as eager converts; the same scalar where nothing changes."""
        return value if value.dtype == dtype else self.make("cast", (value,), dtype)

    def reduce(self, kind: str, value: Scalar, dtype: torch.dtype, place: Scalar | None = None) -> Scalar:
        """Return the reduction of value over the loop's reduced variables.

        place: for argmax and argmin, the number of each point; among equal values the smallest number wins.
        """
        return self.make("reduce", (value,) if place is None else (value, place), dtype, kind)

    def scan(self, kind: str, value: Scalar, dtype: torch.dtype) -> Scalar:
        """Return the reduction of value over the points of the loop's one reduced variable up to the present one."""
        return self.make("scan", (value,), dtype, kind)

    def op(self, name: str, *args: Scalar) -> Scalar:
        """Return a scalar operation on arguments of one dtype; raises WrongDtype where it has no meaning on that.

        Generated C would have one all the same: `/` on integers traps where the divisor is zero.
        """
        operation = SCALAR_OPS[name]
        if args[-1].dtype not in operation.dtypes:
            raise WrongDtype(f"{name} of {args[-1].dtype}")
        dtype = torch.bool if operation.to_bool else args[-1].dtype
        return self.make(name, args, dtype)


def walk(roots: Iterable[Scalar]) -> Iterator[Scalar]:
    """Yield every scalar below roots once, arguments before users."""
    seen: set[int] = set()
    for root in roots:
        stack: list[tuple[Scalar, bool]] = [(root, False)]
        while stack:
            scalar, expanded = stack.pop()
            if expanded:
                yield scalar
            elif id(scalar) not in seen:
                seen.add(id(scalar))
                stack.append((scalar, True))
                stack.extend((arg, False) for arg in reversed(scalar.args))


def rebuild(
    roots: Iterable[Scalar],
    builder: ScalarBuilder,
    mapping: Mapping[Symbol, Expr],
    replace: Callable[[Scalar], Scalar | None] = lambda _: None,
) -> list[Scalar]:
    """Return roots rebuilt in builder, with loop variables substituted and some loads replaced.

    replace: asked for every load after substitution; a scalar it returns takes the load's place.
    """
    rebuilt: dict[int, Scalar] = {}
    roots = list(roots)
    for scalar in walk(roots):
        args = tuple(rebuilt[id(arg)] for arg in scalar.args)
        detail = scalar.detail
        if isinstance(detail, Access):
            detail = Access(detail.buffer, tuple(substitute(part, mapping) for part in detail.index), detail.looked_up)
        elif isinstance(detail, Expr):
            detail = substitute(detail, mapping)
        new = builder.make(scalar.name, args, scalar.dtype, detail, scalar.origin)
        rebuilt[id(scalar)] = (replace(new) or new) if scalar.name == "load" else new
    return [rebuilt[id(root)] for root in roots]
