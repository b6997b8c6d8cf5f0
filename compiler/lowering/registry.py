"""The table of lowerings, and `LoweringCall`: one ATen call with its arguments by name.

A lowering is `LoweringCall -> LoopTensor` (or a tuple of them for operators with several results); it raises
`NoLowering` where this particular call is better left to ATen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import torch

from ..base.errors import UserError
from ..base.seam import planting
from ..base.torch_facts import OpOverload
from ..loops.body import Scalar, ScalarBuilder
from ..loops.scalar_ops import STORAGE_ONLY
from ..symbolic.symbolic_sizes import Extent, Size, same
from .size_reader import SizeReader
from .writer import Element, Index, LoopTensor, LoopWriter, NoLowering, Reduction, broadcast_index

Result = LoopTensor | tuple[LoopTensor | None, ...]
Lowering = Callable[["LoweringCall"], Result]
LOWERINGS: dict[OpOverload, Lowering] = {}
_REPLACED: ContextVar[dict[OpOverload, Lowering]] = ContextVar("replaced_lowerings", default={})  # noqa: B039  never mutated, only replaced


def lowers(*operators: OpOverload) -> Callable[[Lowering], Lowering]:
    """Register a lowering for operators; a second registration is an error."""

    def register(lowering: Lowering) -> Lowering:
        for operator in operators:
            if operator in LOWERINGS:
                raise ValueError(f"{operator} has two lowerings")
            LOWERINGS[operator] = lowering
        return lowering

    return register


def lowering_of(operator: object) -> Lowering | None:
    """Return the lowering in force for an operator, planted ones first."""
    if not isinstance(operator, OpOverload):
        return None
    return _REPLACED.get().get(operator) or LOWERINGS.get(operator)


def replaced_lowerings() -> dict[OpOverload, Lowering]:
    """Return the lowerings that are replaced here; repro scripts plant them again."""
    return dict(_REPLACED.get())


@contextmanager
def replace_lowering(operator: OpOverload, lowering: Lowering) -> Iterator[None]:
    """Put another lowering in force inside the block: how tests plant a wrong one.

    operator: an ATen overload such as `torch.ops.aten.relu.default`.  lowering: `LoweringCall` -> LoopTensor.
    Raises UserError where operator is not an ATen overload.
    """
    if not isinstance(operator, OpOverload):
        raise UserError(
            f"{operator!r} is not an operator overload", hint="pass one such as torch.ops.aten.relu.default"
        )
    token = _REPLACED.set({**_REPLACED.get(), operator: lowering})
    try:
        with planting():
            yield
    finally:
        _REPLACED.reset(token)


def opmath(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype eager computes in for tensors of a dtype: float32 for the half types."""
    return torch.float32 if dtype in STORAGE_ONLY else dtype


@dataclass(frozen=True, slots=True, eq=False)
class LoweringCall:
    """One ATen call to be lowered.

    arguments: by schema name, with LoopTensor for tensors.  examples: the same with fake tensors, for type questions.
    results: fake tensors of the results.  read: how their sizes are read.
    """

    writer: LoopWriter
    name: str
    arguments: dict[str, object]
    examples: dict[str, object]
    results: tuple[torch.Tensor, ...]
    read: SizeReader

    def tensor(self, name: str) -> LoopTensor:
        """Return a tensor argument."""
        value = self.arguments[name]
        if not isinstance(value, LoopTensor):
            raise NoLowering(f"{name} is not a tensor")
        return value

    def number(self, name: str) -> float | int | bool:
        """Return a Python number argument."""
        value = self.arguments[name]
        if not isinstance(value, float | int):
            raise NoLowering(f"{name} is not a number")
        return value

    def integer(self, name: str) -> int:
        """Return an integer argument."""
        value = self.arguments[name]
        if not isinstance(value, int):
            raise NoLowering(f"{name} is not an integer")
        return value

    def dimension(self, rank: int, name: str = "dim") -> int:
        """Return an argument that names one of `rank` dimensions, counted from the first; eager refuses others."""
        value = self.integer(name)
        if not -rank <= value < rank:
            raise NoLowering(f"{name} is not one of {rank} dimensions")
        return value % rank

    def extent(self, name: str) -> Extent:
        """Return an integer argument that may be a dynamic size."""
        value = self.arguments[name]
        if not isinstance(value, int | Size):
            raise NoLowering(f"{name} is not an integer")
        return value

    def extents(self, name: str) -> tuple[Extent, ...]:
        """Return a list of integers or dynamic sizes."""
        value = self.arguments[name]
        if not isinstance(value, list | tuple):
            raise NoLowering(f"{name} is not a list of integers")
        sizes = tuple(each for each in value if isinstance(each, int | Size))
        if len(sizes) != len(value):
            raise NoLowering(f"{name} is not a list of integers")
        return sizes

    def integers(self, name: str) -> tuple[int, ...]:
        """Return a list-of-integers argument; one integer counts as a list of it."""
        value = self.arguments[name]
        if isinstance(value, int):
            return (value,)
        if not isinstance(value, list | tuple) or not all(isinstance(each, int) for each in value):
            raise NoLowering(f"{name} is not a list of integers")
        return tuple(value)

    @property
    def shape(self) -> tuple[Extent, ...]:
        """The shape of the first result."""
        return self.read.sizes(self.results[0].shape)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the first result."""
        return self.results[0].dtype

    def common_dtype(self, *names: str) -> torch.dtype:
        """Return the dtype to which eager promotes these arguments."""
        values = [self.examples[name] for name in names]
        if len(values) == 1:
            return values[0].dtype if isinstance(values[0], torch.Tensor) else torch.get_default_dtype()
        return torch.result_type(values[0], values[1])  # type: ignore[call-overload,no-any-return]  # tensors or numbers

    def operand(
        self, builder: ScalarBuilder, index: Index, value: object, dtype: torch.dtype, *, rounded: torch.dtype | None
    ) -> Scalar:
        """Return an argument's element in dtype; a number that does not fit raises NoLowering.

        rounded: a half dtype to which a Python number is rounded first, where eager does so.
        """
        if isinstance(value, LoopTensor):
            return builder.cast(value.at(builder, broadcast_index(index, value.shape)), dtype)
        if isinstance(value, Size):
            if rounded in STORAGE_ONLY or not (dtype.is_floating_point or dtype == torch.int64):
                raise NoLowering("a dynamic size as a number of another kind")
            return builder.constant(value, dtype)
        if isinstance(value, float | int):
            if rounded is not None:
                value = rounded_number(value, rounded)
            check_fits(value, dtype)
            return builder.constant(value, dtype)
        raise NoLowering(f"argument {value!r} is neither tensor nor number")

    def pointwise(
        self,
        function: Callable[..., Scalar],
        *names: str,
        compute: torch.dtype | None = None,
        round_numbers: bool = False,
        exact: str = "",
    ) -> LoopTensor:
        """Return the tensor whose elements are `function(builder, *elements of the named arguments)`.

        compute: the dtype arguments are cast to; by default the result's, in its computing precision.
        round_numbers: round Python numbers to the tensor's half dtype first, as some eager kernels do.  exact: the
        argument that is not rounded to it where it is one number, or a tensor of one element.
        """
        common = compute or self.dtype
        inside = opmath(common)

        def part(builder: ScalarBuilder, index: Index, name: str) -> Scalar:
            value = self.arguments[name]
            kept = name == exact and is_one_number(value)
            if isinstance(value, LoopTensor) and common in STORAGE_ONLY and value.dtype != common and not kept:
                element = value.at(builder, broadcast_index(index, value.shape))
                return builder.cast(builder.cast(element, common), inside)
            return self.operand(builder, index, value, inside, rounded=common if round_numbers and not kept else None)

        def element(builder: ScalarBuilder, index: Index) -> Scalar:
            result: Scalar = function(builder, *(part(builder, index, name) for name in names))
            return result

        return self.elements(element)

    def elements(self, element: Element, result: int = 0) -> LoopTensor:
        """Return the result tensor whose elements are given, in eager's layout."""
        fake = self.results[result]
        shape, strides = self.read.sizes(fake.shape), self.read.sizes(fake.stride())
        return self.writer.compute(shape, fake.dtype, element, name=self.name, strides=strides)

    def reduction(self, reduction: Reduction, *, result: int = 0) -> LoopTensor:
        """Return the result tensor that a reduction gives, in eager's layout and with the dimensions eager keeps."""
        fake = self.results[result]
        keepdim = len(fake.shape) == len(reduction.shape)
        strides = self.read.sizes(fake.stride())
        return self.writer.reduce(
            replace(reduction, keepdim=keepdim), dtype=fake.dtype, name=self.name, strides=strides
        )


def is_one_number(value: object) -> bool:
    """Return whether an argument is a number or a tensor of one element."""
    return not isinstance(value, LoopTensor) or all(same(size, 1) for size in value.shape)


def rounded_number(value: float | int | bool, dtype: torch.dtype) -> float | int | bool:
    """Return a Python number as a half dtype holds it; other dtypes leave it as it is."""
    return float(torch.tensor(value, dtype=dtype, device="cpu").item()) if dtype in STORAGE_ONLY else value


def check_fits(value: float | int, dtype: torch.dtype) -> None:
    """Raise NoLowering where eager would refuse or wrap a number in an integer dtype."""
    if dtype == torch.bool or dtype.is_floating_point:
        return
    limits = torch.iinfo(dtype)
    if isinstance(value, float) or not limits.min <= value <= limits.max:
        raise NoLowering(f"{value!r} does not fit {dtype}")


def dimensions(call: LoweringCall, name: str, rank: int) -> tuple[int, ...]:
    """Return reduction dimensions, non-negative; none given means all."""
    value = call.arguments.get(name)
    if value is None or value in ([], ()):
        return tuple(range(rank))
    for dim in call.integers(name):
        if not -max(rank, 1) <= dim < max(rank, 1):
            raise NoLowering(f"{name}={dim} of a tensor with {rank} dimensions")  # eager's kernel says so to the user
    return tuple(dim % rank for dim in call.integers(name)) if rank else ()
