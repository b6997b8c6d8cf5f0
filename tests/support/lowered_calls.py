"""A call of every operator that has a lowering, for any dtype: what the level `triton` is held to C on.

The tensors are small and tame; hard values are the business of `op_table`. A call is an operator and its arguments,
chosen from `Given`; where eager refuses a dtype, there is none.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch

import plumbline.compiler.lowering.lower  # noqa: F401  it fills the table of lowerings
from plumbline.compiler.base.torch_facts import OpOverload
from plumbline.compiler.graph.exact_operators import EXACT_SQRT, ONE_HOT
from plumbline.compiler.lowering.registry import LOWERINGS

aten = torch.ops.aten
ROWS, WIDTH = 5, 19


@dataclass(frozen=True)
class Given:
    """The tensors that calls choose from; integers that divide are never zero."""

    x: torch.Tensor  # [ROWS, WIDTH]
    y: torch.Tensor  # as x, positive
    z: torch.Tensor  # as x, positive
    row: torch.Tensor  # [WIDTH], positive
    condition: torch.Tensor  # as x, bool
    where: torch.Tensor  # [4], places of rows
    beside: torch.Tensor  # [ROWS, 3], places of columns
    one: torch.Tensor  # [ROWS, 1], places of columns
    classes: torch.Tensor  # [ROWS], places of columns, one of them 2
    number: torch.Tensor  # []
    image: torch.Tensor  # [2, 3, 4, 6]
    large: torch.Tensor  # [2, 3, 8, 12]
    channel: torch.Tensor  # [3], positive

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))


def given(dtype: torch.dtype) -> Given:
    """Return the tensors for a dtype."""
    generator = torch.Generator().manual_seed(3)

    def tame(*shape: int, positive: bool = False) -> torch.Tensor:
        if dtype == torch.bool:
            return torch.randint(2, shape, generator=generator) > 0
        if not dtype.is_floating_point:
            low = 1 if positive else (0 if dtype == torch.uint8 else -9)
            return torch.randint(low, 9, shape, generator=generator).to(dtype)
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        return (drawn.abs() + 0.1 if positive else drawn).to(dtype)

    places = torch.tensor([4, 0, 2, 2])
    return Given(
        tame(ROWS, WIDTH),
        tame(ROWS, WIDTH, positive=True),
        tame(ROWS, WIDTH, positive=True),
        tame(WIDTH, positive=True),
        torch.rand((ROWS, WIDTH), generator=generator) > 0.5,
        places,
        torch.randint(WIDTH, (ROWS, 3), generator=generator),
        torch.randint(WIDTH, (ROWS, 1), generator=generator),
        torch.tensor([3, 0, 2, 18, 3]),
        tame(positive=True),
        tame(2, 3, 4, 6),
        tame(2, 3, 8, 12),
        tame(3, positive=True),
    )


Call = Callable[[Given], object]
_WRITTEN: dict[OpOverload, Call] = {
    aten.full.default: lambda g: aten.full([3, 5], 2, dtype=g.x.dtype),
    aten.full_like.default: lambda g: aten.full_like(g.x, 2),
    aten.new_full.default: lambda g: aten.new_full(g.x, [3, 5], 2),
    aten.fill.Scalar: lambda g: aten.fill(g.x, 2),
    aten.zeros.default: lambda g: aten.zeros([3, 5], dtype=g.x.dtype),
    aten.new_zeros.default: lambda g: aten.new_zeros(g.x, [3, 5]),
    aten.ones.default: lambda g: aten.ones([3, 5], dtype=g.x.dtype),
    aten.new_ones.default: lambda g: aten.new_ones(g.x, [3, 5]),
    aten.scalar_tensor.default: lambda g: aten.scalar_tensor(2, dtype=g.x.dtype),
    aten.arange.default: lambda g: aten.arange(7, dtype=g.x.dtype),
    aten.arange.start: lambda g: aten.arange(2, 7, dtype=g.x.dtype),
    aten.arange.start_step: lambda g: aten.arange(2, 17, 3, dtype=g.x.dtype),
    aten.threshold_backward.default: lambda g: aten.threshold_backward(g.x, g.y, 1),
    aten.threshold.default: lambda g: aten.threshold(g.x, 0.5, 2),
    aten._prelu_kernel.default: lambda g: aten._prelu_kernel(g.x, g.row),
    aten._prelu_kernel_backward.default: lambda g: aten._prelu_kernel_backward(g.y, g.x, g.row),
    aten.leaky_relu_backward.default: lambda g: aten.leaky_relu_backward(g.y, g.x, 0.1, False),
    aten.hardtanh_backward.default: lambda g: aten.hardtanh_backward(g.y, g.x, -1, 1),
    aten.native_dropout_backward.default: lambda g: aten.native_dropout_backward(g.x, g.condition, 2.0),
    ONE_HOT: lambda g: ONE_HOT(g.where, 5),
    aten.cat.default: lambda g: aten.cat([g.x, g.y, g.x[:, :2]], 1),
    aten.stack.default: lambda g: aten.stack([g.x, g.y], 1),
    aten.embedding.default: lambda g: aten.embedding(g.x, g.where),
    aten.index_select.default: lambda g: aten.index_select(g.x, 0, g.where),
    aten.gather.default: lambda g: aten.gather(g.x, 1, g.beside),
    aten.index.Tensor: lambda g: aten.index(g.x, [g.where - 5, None]),
    aten.constant_pad_nd.default: lambda g: aten.constant_pad_nd(g.x, [1, 2, 3, 0], 1),
    aten.slice_scatter.default: lambda g: aten.slice_scatter(g.x, g.y[:, :4], 1, 2, 10, 2),
    aten.slice_backward.default: lambda g: aten.slice_backward(g.x, [ROWS, 40], 1, 1, 39, 2),
    aten.select_scatter.default: lambda g: aten.select_scatter(g.x, g.row, 0, 3),
    aten.select_backward.default: lambda g: aten.select_backward(g.row, [ROWS, WIDTH], 0, 3),
    aten.flip.default: lambda g: aten.flip(g.x, [1]),
    aten.repeat.default: lambda g: aten.repeat(g.x, [2, 3]),
    aten.scatter.value: lambda g: aten.scatter(g.x, 1, g.one, 1),
    aten.where.self: lambda g: aten.where(g.condition, g.x, g.y),
    aten.where.ScalarOther: lambda g: aten.where(g.condition, g.x, 2),
    aten.where.ScalarSelf: lambda g: aten.where(g.condition, 2, g.x),
    aten.where.Scalar: lambda g: aten.where(g.condition, 1, 2),
    aten.masked_fill.Scalar: lambda g: aten.masked_fill(g.x, g.condition, 1),
    aten.masked_fill.Tensor: lambda g: aten.masked_fill(g.x, g.condition, g.number),
    aten.clamp.default: lambda g: aten.clamp(g.x, 0, 1),
    aten.clamp.Tensor: lambda g: aten.clamp(g.x, g.y, g.z),
    aten.div.Tensor_mode: lambda g: (
        aten.div(g.x, g.y, rounding_mode="floor"),
        aten.div(g.x, g.y, rounding_mode="trunc"),
    ),
    aten.div.Scalar_mode: lambda g: (aten.div(g.x, 3, rounding_mode="floor"), aten.div(g.x, 3, rounding_mode="trunc")),
    aten._to_copy.default: lambda g: aten._to_copy(
        g.x, dtype=torch.float32 if g.x.dtype.itemsize == 8 else torch.int64
    ),
    aten.lerp.Scalar: lambda g: aten.lerp(g.x, g.y, 0.3),
    aten.sum.default: lambda g: aten.sum(g.y),  # of positive numbers: nothing cancels
    aten.mean.default: lambda g: aten.mean(g.y),
    aten.sum.dim_IntList: lambda g: (aten.sum(g.x, [1]), aten.sum(g.x, [0], True)),
    aten.mean.dim: lambda g: (aten.mean(g.x, [1]), aten.mean(g.x, [0], True)),
    aten.amax.default: lambda g: (aten.amax(g.x, [1]), aten.amax(g.x, [0], True)),
    aten.amin.default: lambda g: (aten.amin(g.x, [1]), aten.amin(g.x, [0], True)),
    aten.max.dim: lambda g: aten.max(g.x, 1),
    aten.min.dim: lambda g: aten.min(g.x, 0),
    aten.argmax.default: lambda g: (aten.argmax(g.x), aten.argmax(g.x, 1)),
    aten.argmin.default: lambda g: (aten.argmin(g.x), aten.argmin(g.x, 0)),
    aten.any.dim: lambda g: aten.any(g.x, 1),
    aten.any.dims: lambda g: aten.any(g.x, [0, 1]),
    aten.all.dim: lambda g: aten.all(g.x, 1),
    aten.all.dims: lambda g: aten.all(g.x, [0, 1]),
    aten.cummax.default: lambda g: (aten.cummax(g.x, 1), aten.cummax(g.y, 0)),
    aten.cummin.default: lambda g: (aten.cummin(g.x, 1), aten.cummin(g.y, 0)),
    aten.logcumsumexp.default: lambda g: (aten.logcumsumexp(g.x, 1), aten.logcumsumexp(g.y, 0)),
    aten.cumsum.default: lambda g: (aten.cumsum(g.x, 1), aten.cumsum(g.y, 0)),
    aten.cumprod.default: lambda g: (aten.cumprod(g.y, 1), aten.cumprod(g.y, 0)),
    aten.prod.dim_int: lambda g: aten.prod(g.y, 0),
    aten.var.correction: lambda g: aten.var(g.x, [1], correction=1),
    aten.std.correction: lambda g: aten.std(g.x, [0], correction=0),
    aten.var_mean.correction: lambda g: aten.var_mean(g.x, [1], correction=1),
    aten.std_mean.correction: lambda g: aten.std_mean(g.x, [1], correction=1, keepdim=True),
    aten._softmax.default: lambda g: (aten._softmax(g.x, 1, False), aten._softmax(g.x, 0, False)),
    aten._log_softmax.default: lambda g: aten._log_softmax(g.x, 1, False),
    aten.logsumexp.default: lambda g: aten.logsumexp(g.x, [1]),
    aten._softmax_backward_data.default: lambda g: aten._softmax_backward_data(g.x, g.y, 1, g.x.dtype),
    aten._log_softmax_backward_data.default: lambda g: aten._log_softmax_backward_data(g.x, g.y, 1, g.x.dtype),
    aten.native_layer_norm.default: lambda g: aten.native_layer_norm(g.x, [WIDTH], g.row, g.row, 1e-5),
    aten._native_batch_norm_legit_no_training.default: lambda g: aten._native_batch_norm_legit_no_training(
        g.image, g.channel, g.channel, g.channel, g.channel, 0.1, 1e-5
    ),
    aten.native_batch_norm.default: lambda g: aten.native_batch_norm(
        g.image, g.channel, g.channel, None, None, True, 0.1, 1e-5
    ),
    aten._native_batch_norm_legit.no_stats: lambda g: aten._native_batch_norm_legit(
        g.image, g.channel, None, True, 0.1, 1e-5
    ),
    aten._native_batch_norm_legit_functional.default: lambda g: aten._native_batch_norm_legit_functional(
        g.image, g.channel, g.channel, g.channel, g.channel, True, 0.1, 1e-5
    ),
    aten.nll_loss_forward.default: lambda g: (
        aten.nll_loss_forward(g.x, g.classes, None, 1, -100),
        aten.nll_loss_forward(g.x, g.classes, g.row, 0, 2),
        aten.nll_loss_forward(g.y, g.classes, g.row, 2, 2),
    ),
    aten.nll_loss_backward.default: lambda g: (
        aten.nll_loss_backward(g.number, g.x, g.classes, None, 1, -100, g.number),
        aten.nll_loss_backward(g.y[:, 0], g.x, g.classes, g.row, 0, 2, g.number),
    ),
    aten.max_pool2d_with_indices.default: lambda g: aten.max_pool2d_with_indices(g.image, [3, 3], [2, 2], [1, 1]),
    aten.avg_pool2d.default: lambda g: aten.avg_pool2d(g.image, [2, 2]),
    aten.upsample_nearest2d.default: lambda g: aten.upsample_nearest2d(g.image, [8, 12]),
    aten.upsample_nearest2d_backward.default: lambda g: aten.upsample_nearest2d_backward(
        g.large, [8, 12], [2, 3, 4, 6]
    ),
    aten.upsample_bilinear2d.default: lambda g: aten.upsample_bilinear2d(g.image, [8, 12], False),
}


def _by_schema(operator: OpOverload) -> Call | None:
    """Return a call with the tensors and numbers that an operator needs in order; None where it needs others."""
    needed = [each for each in operator._schema.arguments if not each.has_default_value()]
    kinds = [str(each.type) for each in needed]
    if any(each.kwarg_only for each in needed) or not set(kinds) <= {"Tensor", "number", "Optional[number]", "Scalar"}:
        return None

    def call(g: Given) -> object:
        tensors = iter((g.x, g.y, g.z) if kinds.count("Tensor") > 1 else (g.x,))
        return operator(*(next(tensors) if kind == "Tensor" else 3 for kind in kinds))

    return call


CALLS: dict[OpOverload, Call] = {
    operator: call for operator in LOWERINGS if (call := _WRITTEN.get(operator) or _by_schema(operator)) is not None
}

DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)


def accepted(dtype: torch.dtype) -> dict[OpOverload, Call]:
    """Return the calls that eager accepts for a dtype."""
    tensors, found = given(dtype), {}
    for operator, call in CALLS.items():
        if operator is EXACT_SQRT and not dtype.is_floating_point:
            continue  # an operator of ours, made for floats alone
        try:
            call(tensors)
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue
        found[operator] = call
    return found


def together(calls: dict[OpOverload, Call]) -> Callable[..., tuple[torch.Tensor, ...]]:
    """Return one function of all tensors that makes all calls; results in their order."""

    def run(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        chosen = Given(*tensors)
        return tuple(each for call in calls.values() for each in results_of(call(chosen)))

    return run


def results_of(value: object) -> tuple[torch.Tensor, ...]:
    """Return the tensors of a result that have elements, in order."""
    if isinstance(value, torch.Tensor):
        return (value,)
    assert isinstance(value, tuple | list)
    return tuple(tensor for each in value for tensor in results_of(each))
