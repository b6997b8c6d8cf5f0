"""Eager = loops = fused loops = C for reductions, views, indexing, normalisations and small programs of all of them."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.native import compile_graph
from support.backend_levels import as_tuple, run_levels, same_form
from support.hard_values import hard_tensor, ulps_apart

pytestmark = pytest.mark.cc
aten = torch.ops.aten


def noisy(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def check(function: Callable[..., object], *inputs: torch.Tensor, error: float = 4.0, terms: float = 1e-30) -> None:
    """Hold every level to eager, whose own distance from the fp64 reference is always allowed.

    error: what is allowed on top, in units of eps times the greatest result, or times `terms` where sums cancel.
    """
    wanted = as_tuple(function(*inputs))
    exact = as_tuple(
        function(*(t.double() if t.dtype in (torch.float32, torch.float16, torch.bfloat16) else t for t in inputs))
    )
    for level, outputs in run_levels(function, inputs).items():
        for number, (found, want, true) in enumerate(zip(outputs, wanted, exact, strict=True)):
            assert isinstance(found, torch.Tensor)
            assert isinstance(want, torch.Tensor)
            assert isinstance(true, torch.Tensor)
            assert same_form(found, want), (
                f"{level} output {number}: {found.stride()} {found.dtype}, {want.stride()} {want.dtype}"
            )
            if not want.dtype.is_floating_point:
                assert torch.equal(found, want), f"{level} output {number}"
                continue
            assert torch.equal(found.isnan(), want.isnan()), f"{level} output {number}: NaN elsewhere"
            finite = true.double().nan_to_num(0, 0, 0).abs()
            scale = torch.finfo(want.dtype).eps * max(float(finite.max()) if finite.numel() else 1.0, terms)
            allowed = error * scale + (want.double() - true.double()).abs().nan_to_num(0, 0, 0)
            apart = (found.double() - true.double()).abs()
            apart = torch.where(found == want, 0.0, apart.nan_to_num(0))
            assert bool((apart <= allowed).all()), f"{level} output {number}: off by {(apart / scale).max():.3g} units"


FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
SHAPES = [((7,), 0), ((1,), 0), ((3, 5), 1), ((3, 5), 0), ((2, 33), 1), ((33, 17), 0), ((4, 3, 16), 1), ((5, 1, 20), 2)]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_reductions_of_floats(shape: tuple[int, ...], dim: int, dtype: torch.dtype) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            x.sum(dim),
            x.sum(),
            x.mean(dim, keepdim=True),
            x.amax(dim),
            x.amin(dim, keepdim=True),
            *x.max(dim),
            *x.min(dim),
            x.argmax(dim),
            x.argmax(),
            x.argmin(dim),
            (x > 0).any(dim),
            (x > 0).all(),
            (x != 0).all(dim),
        )

    x = noisy(*shape, dtype=dtype)
    check(program, x, error=1, terms=float(x.double().abs().sum()))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool], ids=str)
def test_reductions_of_integers(dtype: torch.dtype) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = [x.sum(0), x.sum(), x.amax(1), x.amin(0), x.any(1), x.all(0), x.prod(1)]
        return tuple(found) if dtype == torch.bool else (*found, x.argmax(1), x.argmin(0), *x.max(0))

    check(program, hard_tensor(dtype, 7 * 19, 3).reshape(7, 19))


def test_reductions_of_hard_values() -> None:
    for column in (0, 3, 16):
        x = noisy(5, 33)
        x[1, column] = float("nan")
        x[2, column] = float("inf")
        x[3, column] = -float("inf")
        x[4, [column, 7]] = torch.tensor([float("inf"), -float("inf")])
        check(lambda x: (x.sum(1), x.amax(1), x.amin(1), x.argmax(1), x.argmin(1), x.mean(1), x.sum(0)), x)
        check(lambda x: (x.sum(1), x.logsumexp(1), x.softmax(1)), torch.where(x.isinf(), 100.0, x))


def test_ties_take_the_first_place() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0], [0.0, -0.0, 0.0, -0.0]])
    check(lambda x: (x.argmax(1), x.argmin(1), x.argmax(), x.t().argmax(), x.t().argmin(0), (x + 0).t().argmax(1)), x)


def test_empty_and_scalar_reductions() -> None:
    check(lambda x: (x.sum(0), x.sum(1), x.prod(), (x > 0).any(1), (x > 0).all(1)), torch.empty(3, 0))
    check(lambda x: (x.sum(), x.mean(), x.amax(), x + 1), torch.tensor(2.5))
    check(lambda x: (x.sum(0), x * 2), torch.empty(0, 4))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (4, 16), (2, 33), (2, 3, 40), (5, 1)])
def test_normalisations(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    weight, bias = noisy(shape[-1], dtype=dtype, seed=1), noisy(shape[-1], dtype=dtype, seed=2)

    def program(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            x.softmax(-1),
            x.softmax(0),
            x.log_softmax(-1),
            F.layer_norm(x, [shape[-1]], w, b),
            F.layer_norm(x, [shape[-1]]),
        )

    check(program, noisy(*shape, dtype=dtype), weight, bias, error=8)


@pytest.mark.parametrize("shape", [(6, 5), (3, 100), (40, 17)])
def test_moments_have_eagers_accuracy(shape: tuple[int, ...]) -> None:
    x = noisy(*shape) + 1000
    check(lambda x: (x.var(1), x.std(0), *torch.var_mean(x, 1), x.var(), x.var(1, correction=0, keepdim=True)), x)


@pytest.mark.parametrize("count", [1000, 65_537, 1_000_003])
def test_long_sums_are_no_worse_than_eager(count: int) -> None:
    x = noisy(count).abs() + 0.1
    check(lambda x: (x.sum(), x.mean(), (x * x).sum()), x, error=1)


def test_long_column_sums_are_no_worse_than_eager() -> None:
    check(lambda x: x.sum(0), noisy(20_000, 9).abs() + 0.1, error=1)


VIEWS: dict[str, Callable[[torch.Tensor], object]] = {
    "transpose": lambda x: (x * 2).t() + 1,
    "permute": lambda x: x.view(2, 3, 8).permute(2, 0, 1).contiguous() * 2,
    "flatten_split": lambda x: (x.relu().view(48).view(4, 12).sum(1), x.reshape(3, 16).amax(0)),
    "slices": lambda x: x[1:5:2, ::3] + x[0, 0],
    "select": lambda x: x[2] * x[:, 3].sum(),
    "expand": lambda x: x.sum(1, keepdim=True).expand(6, 8) * x,
    "squeeze": lambda x: x.unsqueeze(1).squeeze(1).unsqueeze(-1).squeeze() - 1,
    "diagonal": lambda x: (x.diagonal() * 2, x.diagonal(1, 0, 1) + 1),
    "split": lambda x: tuple(part.exp() for part in x.split(3, 1)),
    "unbind": lambda x: sum(x.unbind(0)),
    "chunk_glu": lambda x: F.glu(x, 1),
    "cat": lambda x: torch.cat([x, x.sin(), x[:, :3]], 1).relu(),
    "stack": lambda x: torch.stack([x, x + 1], 1).sum(0),
    "pad": lambda x: F.pad(x, [1, 2, 3, 0], value=2.5) + 1,
    "flip": lambda x: x.flip(0) + x.flip(1),
    "repeat": lambda x: x.repeat(2, 3) * 2,
    "triangles": lambda x: x.tril() + x.triu(1) * 2,
    "slice_scatter": lambda x: torch.slice_scatter(x, x[:, :2] * 5, 1, 2, 6, 2),
    "select_scatter": lambda x: torch.select_scatter(x, x[0] * 5, 0, 3),
    "slice_backward": lambda x: aten.slice_backward(x[:, :4], [6, 9], 1, 1, 9, 2),
    "select_backward": lambda x: aten.select_backward(x[:, 0], [6, 5], 1, -2),
    "roundtrip": lambda x: (x.t().reshape(6, 8) + x).view(8, 6).t(),
    "full": lambda x: x + torch.full((6, 1), 3.0) + torch.arange(8) + torch.zeros_like(x) + torch.ones(8),
    "one_hot": lambda x: (x.argmax(1, keepdim=True) == torch.arange(8)).to(x.dtype),
    "outputs_twice": lambda x: (y := x + 1, y, y.t(), y[1:]),
    "input_views": lambda x: (x.t(), x.view(48), x),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str, dtype: torch.dtype) -> None:
    check(VIEWS[name], noisy(6, 8, dtype=dtype))


INDEXING: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "rows": lambda x, i: x[i] * 2,
    "columns": lambda x, i: x[:, i] + 1,
    "pairs": lambda x, i: x[i, i.flip(0)],
    "outer": lambda x, i: x[i.unsqueeze(1), i],
    "apart": lambda x, i: x.view(6, 2, 3)[i, :, i % 3],
    "index_select": lambda x, i: x.index_select(1, i.abs()).sum(1),
    "gather": lambda x, i: x.gather(1, i.abs().unsqueeze(1)),
    "embedding": lambda x, i: F.embedding(i.abs(), x).softmax(-1),
    "scatter": lambda x, i: x.scatter_add(0, i.abs().unsqueeze(1).expand(4, 6), x[:4]) + 1,
    "one_row": lambda x, i: x[:1][i * 0],
}


@pytest.mark.parametrize("name", INDEXING)
def test_indexing(name: str) -> None:
    check(
        INDEXING[name],
        noisy(6, 6),
        torch.tensor([0, -1, 3, -6]) % 6 if name == "apart" else torch.tensor([0, -1, 3, -5]),
    )


def test_an_index_out_of_range_raises_what_eager_raises() -> None:
    x, good, bad = noisy(4, 4), torch.tensor([0, 1]), torch.tensor([0, 4])
    compiled = compile_graph(trace(lambda x, i: x[i] + 1, (x, good)), (x, good))
    assert torch.equal(compiled(x, good)[0], x[good] + 1)
    with pytest.raises(IndexError):
        compiled(x, bad)


def test_an_integer_division_by_zero_raises_what_eager_raises() -> None:
    x, y = torch.arange(20), torch.ones(20, dtype=torch.int64)
    compiled = compile_graph(trace(lambda x, y: x // y, (x, y)), (x, y))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        compiled(x, y * 0)


def test_outputs_that_are_views_of_inputs_stay_views() -> None:
    x = noisy(3, 4)
    out, copy, base = compile_graph(trace(lambda x: (x.t(), (y := x + 1).t(), y), (x,)), (x,))(x)
    assert out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert copy.untyped_storage().data_ptr() == base.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_mutation_of_an_input_is_ordered() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = x.sin()
        aten.copy_(x, y * 2)
        return before, x.cos()

    x, y = noisy(3, 4), noisy(3, 4, seed=1)
    compiled = compile_graph(trace(program, (x.clone(), y)), (x, y))
    mine, theirs = x.clone(), x.clone()
    for found, want in zip(compiled(mine, y), program(theirs, y), strict=True):
        assert ulps_apart(found, want).max() <= 2
    assert torch.equal(mine, theirs)


def test_random_draws_are_eagers() -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.dropout(x, 0.5) + 1, torch.rand_like(x) * x, torch.bernoulli(x.sigmoid())

    x = noisy(6, 8)
    compiled = compile_graph(trace(program, (x,)), (x,))
    torch.manual_seed(3)
    found, state = compiled(x), torch.get_rng_state()
    torch.manual_seed(3)
    for mine, want in zip(found, program(x), strict=True):
        torch.testing.assert_close(mine, want)
    assert torch.equal(state, torch.get_rng_state())


def test_attention_and_a_loss() -> None:
    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = (q @ k.transpose(-1, -2)) / 4.0
        mask = torch.ones(7, 7, dtype=torch.bool).tril()
        return (scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v).transpose(1, 2).reshape(2, 7, 32) * 2

    check(attention, noisy(2, 2, 7, 16), noisy(2, 2, 7, 16, seed=1), noisy(2, 2, 7, 16, seed=2), error=8)
    targets = torch.tensor([1, 4, 2, 0])
    check(lambda x: F.cross_entropy(x, targets), noisy(4, 5))
    check(
        lambda x, y: (F.mse_loss(x, y), F.smooth_l1_loss(x, y), F.binary_cross_entropy_with_logits(x, y.sigmoid())),
        noisy(9, 5),
        noisy(9, 5, seed=1),
    )


def test_convolution_pooling_and_batch_norm() -> None:
    weight = noisy(4, 3, 3, 3)

    def network(x: torch.Tensor, w: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        y = F.batch_norm(F.conv2d(x, w, padding=1), m, v, training=False).relu()
        return F.max_pool2d(y, 2).mean((2, 3)).softmax(1)

    check(network, noisy(2, 3, 8, 8), weight, noisy(4), noisy(4, seed=1).abs() + 0.5, error=16)


@pytest.mark.parametrize("shape", [(70, 100), (3, 1500), (130, 2049), (2, 65, 257)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32], ids=str)
def test_wide_columns(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        dims = tuple(range(len(shape) - 1))
        return x.sum(dims), x.amax(0), (x * 2).amin(0), x.sum(0)

    x = (noisy(*shape) * 9).to(dtype)
    check(program, x, error=1, terms=float(x.double().abs().sum(tuple(range(len(shape) - 1))).max()))


@pytest.mark.parametrize("shape", [(16, 48), (32, 17), (64, 5), (7, 33)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8], ids=str)
def test_transposed_reads_in_tiles(shape: tuple[int, int], dtype: torch.dtype) -> None:
    x, y = (noisy(*shape, seed=n).mul(9).to(dtype) for n in (1, 2))
    check(
        lambda x, y: ((x.t() + y.t()).contiguous(), (x.t() * 2).contiguous() + y.t(), x.t().relu().contiguous()), x, y
    )


def test_one_position_per_row() -> None:
    x, i = noisy(5, 9), torch.tensor([[0], [8], [3], [3], [1]])
    check(lambda x, i: (x.scatter(1, i, 2.5), torch.zeros(5, 9).scatter(1, i, -1.0) * x), x, i)
    check(lambda x: (torch.arange(6).view(2, 3) + x.view(2, 3), torch.full((2, 3), 7) * x.view(2, 3)), torch.arange(6))


def test_a_filled_tensor_written_through_a_view_is_not_taken_for_its_filling() -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        filled = torch.zeros(3, 4)
        aten.copy_(filled[1], x)
        return filled + 1, filled.t() * 2

    x = noisy(4)
    compiled = compile_graph(trace(program, (x,)), (x,))
    for found, want in zip(compiled(x), program(x), strict=True):
        assert torch.equal(found, want)


def test_logsumexp_of_infinities() -> None:
    x = noisy(6, 20)
    x[1, 3], x[2], x[3, 4], x[4, 0] = float("inf"), -float("inf"), -float("inf"), float("nan")
    check(lambda x: (x.logsumexp(1), x.logsumexp(0, keepdim=True), x.logsumexp((0, 1))), x, error=8)
    check(lambda x: (aten.copy(x, x[:1] * 2), *(p + 1 for p in aten.unsafe_split(x, 4, 0))), noisy(6, 20))
