"""What a trace says of the order of results in memory, against the kernels, on inputs of every order."""

import itertools
import math

import pytest
import torch

import plumbline
from plumbline.compiler.base.symbol_facts import hint_value
from plumbline.compiler.base.torch_facts import FakeTensorMode, ShapeEnv
from plumbline.compiler.graph.shapes.shape_rules import fake_result
from plumbline.compiler.graph.shapes.stride_rules import LAYOUTS
from plumbline.compiler.graph.tracer import fake_like
from support.torch_release import since_release

aten = torch.ops.aten
NORMS = [False, 0.1, 1e-5]


def laid_out(shape, order, dtype=torch.float32):
    """Return a tensor whose dimensions lie in memory in the given order, the first outermost."""
    count = math.prod(shape)
    values = (torch.arange(count) % 7 + 1).to(dtype).reshape([shape[dimension] for dimension in order])
    return values.permute([order.index(dimension) for dimension in range(len(shape))])


def copied():
    """Yield tensors that are copied before a part is replaced: expanded ones, one with gaps, transposed ones."""
    yield torch.arange(3.0).expand(5, 3).t()
    yield torch.arange(3.0)[:, None].expand(3, 4)
    yield torch.ones(1, 1, 4).expand(3, 5, 4).transpose(0, 2)
    yield torch.arange(24.0).reshape(4, 6)[:, ::2]
    yield torch.arange(12.0).reshape(3, 4).t()
    yield torch.ones(1, 4).expand(1, 4)


def images(*shape):
    """Yield images in row-major order, channels last, and in an order that no kernel keeps."""
    batch_and_channels, space = (0, 1), tuple(range(2, len(shape)))
    for order in ((*batch_and_channels, *space), (0, *space, 1), (*reversed(space), 1, 0)):
        yield laid_out(shape, order)


def pairs(dtype=torch.float32):
    """Yield two tensors that are broadcast, each in several orders, and one beside a number and an expanded one."""
    for first in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        for second in ((0, 1), (1, 0)):
            yield laid_out((4, 1, 5), first, dtype), laid_out((3, 5), second, dtype)
    yield laid_out((4, 5), (1, 0), dtype), torch.tensor(2, dtype=dtype)
    yield torch.full((), 0.5, dtype=dtype).expand(4, 3, 5), laid_out((4, 3, 5), (0, 2, 1), dtype)


ODD = [
    ((1,), (3,)), ((3,), (1,)), ((1, 2), (1, 1)), ((1, 2), (4, 2)), ((2, 1), (1, 2)), ((2, 1), (1, 7)),
    ((1, 1), (5, 3)), ((2, 2), (1, 2)), ((2, 2), (0, 1)), ((2, 1, 3), (1, 9, 2)), ((2, 1, 3), (3, 1, 1)),
    ((2, 2, 3), (1, 6, 2)),
    ((1, 2, 3), (1, 3, 1)), ((2, 3, 1, 1), (3, 1, 3, 3)), ((2, 3, 1, 2), (6, 1, 6, 3)),
]  # fmt: skip


def odd_pairs(dtype=torch.float32):
    """Yield two tensors with sizes of 1 that have strides of any kind, expanded ones among them."""
    made = [torch.empty_strided(shape, steps, dtype=dtype).fill_(1) for shape, steps in ODD]
    for first, second in itertools.product(made, made):
        if all(m == n or 1 in (m, n) for m, n in zip(reversed(first.shape), reversed(second.shape), strict=False)):
            yield first, second


def norms(*, statistics, training):
    for x in (*images(2, 3, 4, 5), laid_out((4, 3, 5), (2, 1, 0))):
        mean, variance = torch.zeros(3), torch.ones(3)
        yield x, mean, mean, *((mean, variance) if statistics else ()), *training, 0.1, 1e-5


def unpooled():
    for x in (*images(2, 3, 2, 2), torch.empty_strided((1, 2, 2, 1), (1, 1, 2, 1)).fill_(1)):
        yield x, torch.zeros_like(x, dtype=torch.int64), [3, 4]


def filled(value):
    """Yield a tensor with gaps, whose copy is dense in its order."""
    x = torch.arange(120.0).reshape(6, 5, 4)
    return [(part, 0, torch.tensor([1, 0]), value) for part in (x[:, :, ::2].transpose(0, 1), x.diagonal(), x)]


def halves(pair):
    return [(torch.sigmoid(first), torch.full_like(first, 0.5).contiguous(), None, 0) for first, _ in pair]


def transformed(dtype=torch.complex64):
    """Yield tensors that lie in each order, with one, two and three dimensions for a Fourier transform."""
    shape = (2, 3, 4, 5)
    for order in itertools.permutations(range(4)):
        for count in (1, 2, 3):
            for dims in itertools.permutations(range(4), count):
                yield laid_out(shape, order, dtype), list(dims)
    for places, dim in itertools.product(itertools.product((0, 1), repeat=4), range(4)):
        part = torch.ones([size if one else 1 for size, one in zip(shape, places, strict=True)], dtype=dtype)
        yield part.expand(shape), [dim]
        yield part, [dim]


PADDED = [(x[0], [1] * 6) for x in images(1, 3, 4, 4, 4)] + [(x, [1] * 6) for x in images(3, 3, 4, 4)]
PADDED_IMAGES = [(x, [1] * 4) for x in images(2, 3, 4, 4)]
CALLS = {
    aten._batch_norm_no_update.default: norms(statistics=True, training=()),
    aten._batch_norm_with_update.default: norms(statistics=True, training=()),
    aten._batch_norm_with_update_functional.default: norms(statistics=True, training=()),
    aten._fft_c2c.default: [(x, dims, 0, True) for x, dims in transformed()],
    aten._fft_c2r.default: [(x, dims, 0, 2 * x.shape[dims[-1]] - 1) for x, dims in transformed()],
    aten._fft_r2c.default: [(x, dims, 0, one) for x, dims in transformed(torch.float32) for one in (True, False)],
    aten._native_batch_norm_legit.default: norms(statistics=True, training=(True,)),
    aten._native_batch_norm_legit.no_stats: norms(statistics=False, training=(True,)),
    aten._native_batch_norm_legit_functional.default: norms(statistics=True, training=(True,)),
    aten.native_batch_norm.default: norms(statistics=True, training=(True,)),
    aten.angle.default: [(x.to(torch.complex64),) for x, _ in pairs()],
    aten.binary_cross_entropy.default: halves(pairs()),
    aten.channel_shuffle.default: [(x, 2) for x in images(2, 4, 3, 3)],
    aten.diagonal_scatter.default: [(x, x.diagonal() + 1) for x in copied()],
    aten.div.Tensor_mode: [(*pair, {"rounding_mode": "floor"}) for pair in pairs()],
    aten.fmod.Tensor: [*pairs(), *odd_pairs(torch.int64)],
    aten.huber_loss.default: [(*pair, 0) for pair in odd_pairs()],
    aten.index_fill.int_Scalar: filled(2.0),
    aten.index_fill.int_Tensor: filled(torch.tensor(2.0)),
    aten.isclose.default: odd_pairs(),
    aten.log_sigmoid_forward.default: [(x,) for x, _ in pairs()],
    aten.max_unpool2d.default: unpooled(),
    aten.mse_loss.default: [(*pair, 0) for pair in odd_pairs()],
    aten.native_dropout_backward.default: [(x, x > 2, 2.0) for x, _ in pairs()],
    aten.nll_loss2d_forward.default: [
        (x, laid_out((2, 4, 5), order, torch.int64) % 3, None, reduction, -100)
        for x in images(2, 3, 4, 5)
        for order in ((0, 1, 2), (2, 1, 0))
        for reduction in (0, 1)
    ],
    aten.normal.Tensor_Tensor: [(x, x) for x, _ in pairs()],
    aten.pow.Scalar: [(2, x) for x, _ in pairs()],
    aten.reflection_pad2d.default: PADDED_IMAGES,
    aten.reflection_pad3d.default: PADDED,
    aten.remainder.Scalar_Tensor: [(2, x) for x, _ in odd_pairs(torch.int64)],
    aten.remainder.Tensor: [*pairs(), *odd_pairs(torch.int64)],
    aten.replication_pad2d.default: PADDED_IMAGES,
    aten.replication_pad3d.default: PADDED,
    aten.rrelu_with_noise.default: [(x, torch.empty_like(x)) for x, _ in pairs()],
    aten.select_scatter.default: [(x, x[0] + 1, 0, 0) for x in copied()],
    aten.slice_scatter.default: [(x, x[:1] + 1, 0, 0, 1) for x in copied()],
    aten.sigmoid_backward.default: odd_pairs(torch.bfloat16),
    aten.smooth_l1_loss.default: [(*pair, 0) for pair in odd_pairs()],
    aten.tanh_backward.default: odd_pairs(torch.bfloat16),
    aten.threshold_backward.default: [(*pair, 1) for pair in odd_pairs()],
}
CALLS[aten.rsub.Tensor] = [(second, first) for first, second in pairs(torch.bfloat16)]
CASES = {operator: list(CALLS.get(operator, pairs())) for operator in LAYOUTS}

# The first tested release whose own rule is right: the correction serves older ones, and goes with the last of them.
SPOILT_IN = {aten.index_fill.int_Scalar: "2.13", aten.index_fill.int_Tensor: "2.13"}  # right before that
MENDED_IN = {
    aten.diagonal_scatter.default: "2.13",
    aten.max_unpool2d.default: "2.15",
    aten.polar.default: "2.15",
    aten.reflection_pad2d.default: "2.13",
    aten.replication_pad2d.default: "2.13",
    aten.select_scatter.default: "2.13",
    aten.slice_scatter.default: "2.13",
}


def strides(results, of):
    """Return dtype, shape and strides of the first results."""
    tensors = [item for item in (results if isinstance(results, tuple) else (results,)) if item is not None]
    return [(t.dtype, tuple(t.shape), t.stride()) for t in tensors][:of]


def promise(rule, operator, positional, named, shapes=None):
    mode = FakeTensorMode(shape_env=shapes)
    make = fake_like if shapes is None else lambda value, mode: mode.from_tensor(value)  # of open sizes
    fakes = [make(value, mode) if isinstance(value, torch.Tensor) else value for value in positional]
    with mode:
        return rule(operator, fakes, named)


def split(arguments):
    named = arguments[-1] if isinstance(arguments[-1], dict) else {}
    return [item for item in arguments if item is not named], named


@pytest.mark.parametrize("operator", CASES, ids=str)
def test_results_lie_as_was_promised(operator):
    differs = False
    for arguments in CASES[operator]:
        positional, named = split(arguments)
        real = strides(operator(*positional, **named), 1)
        assert strides(promise(fake_result, operator, positional, named), 1) == real, arguments
        plain = promise(lambda call, args, kwargs: call(*args, **kwargs), operator, positional, named)
        differs = differs or strides(plain, 1) != real
    spoilt = SPOILT_IN.get(operator)
    if since_release(MENDED_IN.get(operator)) or (spoilt is not None and not since_release(spoilt)):
        assert not differs, "this torch does not have the right rule: take the operator from the table of releases"
    else:
        assert differs, "torch has mended its rule: name the release in MENDED_IN"


BINARY_CALLS = (
    "add.Tensor sub.Tensor mul.Tensor div.Tensor eq.Tensor lt.Tensor pow.Tensor_Tensor maximum.default fmin.default "
    "atan2.default hypot.default igamma.default copysign.Tensor floor_divide.default heaviside.default "
    "logaddexp.default logical_or.default rsub.Tensor special_xlog1py.default xlogy.Tensor nextafter.default "
    "bitwise_and.Tensor gcd.default ldexp.Tensor special_zeta.default complex.default polar.default"
)

WHOLE_NUMBERS = ("bitwise_and.Tensor", "gcd.default")
WITHOUT_KERNEL = {
    torch.float32: WHOLE_NUMBERS,
    torch.bfloat16: (*WHOLE_NUMBERS, "special_zeta.default", "complex.default", "polar.default"),
    torch.int64: tuple(f"{name}.default" for name in ("hypot", "igamma", "logaddexp", "nextafter", "complex", "polar")),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("name", BINARY_CALLS.split())
def test_results_of_odd_operands_lie_as_was_promised(name, dtype):
    operator = getattr(getattr(aten, name.split(".")[0]), name.split(".")[1])
    if name in WITHOUT_KERNEL[dtype]:
        with pytest.raises(RuntimeError):
            operator(*next(odd_pairs(dtype)))
        return
    for arguments in list(odd_pairs(dtype))[::3]:
        real = strides(operator(*arguments), 1)
        assert strides(promise(fake_result, operator, arguments, {}), 1) == real, arguments


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("operator", [aten.mul.Tensor, aten.add.Tensor, aten.eq.Tensor, aten.atan2.default], ids=str)
def test_halves_lie_as_was_promised(operator, dtype):
    """torch's rules convert half operands, and forget how an expanded one lies."""
    for arguments in pairs(dtype):
        real = strides(operator(*arguments), 1)
        assert strides(promise(fake_result, operator, arguments, {}), 1) == real, arguments


def known(results):
    """Return tensors of the sizes and strides that expressions have in this call."""
    tensors = [item for item in (results if isinstance(results, tuple) else (results,)) if item is not None]
    return tuple(
        torch.empty_strided([int(n) for n in t.shape], [int(n) for n in t.stride()], dtype=t.dtype, device="meta")
        for t in tensors
    )


ELEMENTWISE = [
    operator
    for operator, layout in LAYOUTS.items()
    if layout.__name__.endswith("_operands") and all(map(torch.is_tensor, split(CASES[operator][0])[0]))
]


def moving(promised):
    """Leave out the strides of dimensions of one place: with open sizes they are not known."""
    return [(dtype, shape, [s for n, s in zip(shape, steps, strict=True) if n > 1]) for dtype, shape, steps in promised]


@pytest.mark.parametrize("operator", ELEMENTWISE, ids=str)
def test_results_of_open_sizes_lie_as_was_promised(operator):
    transposed = torch.empty_strided((10, 1, 5), (1, 10, 10)).fill_(0.5)
    for arguments in [*CASES[operator][1:6:2], (transposed, torch.empty_strided((1, 10, 5), (1, 1, 10)).fill_(2))]:
        positional, named = split(arguments)
        if operator is aten.div.Tensor_mode:
            named = {"rounding_mode": "floor"}
        real = strides(operator(*positional, **named), 1)
        open_sizes = promise(fake_result, operator, positional, named, ShapeEnv())
        assert moving(strides(known(open_sizes), 1)) == moving(real), arguments


LOOSE = [((2, 1), (1, 2)), ((2, 1), (5, 2)), ((3, 1, 4), (4, 7, 1)), ((3, 1, 4), (1, 7, 3)), ((1, 3), (5, 2)),
         ((2, 1, 3, 1), (3, 9, 1, 2)), ((1, 4, 1), (9, 1, 9)),
         ((1,), (3,)), ((0, 1, 3), (3, 3, 1)), ((0, 1), (1, 1)), ((2, 0, 1), (1, 5, 2))]  # fmt: skip
UNARY = "sin neg relu gelu leaky_relu hardtanh sigmoid silu abs"
BINARY = "add sub mul div eq lt ge fmod remainder"


def loose_calls(x):
    """Yield elementwise calls on a tensor that has dimensions of one place."""
    for name in UNARY.split():
        yield getattr(aten, name).default, (x,)
    for name in BINARY.split():
        yield getattr(aten, name).Tensor, (x, x)
        yield getattr(aten, name).Tensor, (x, torch.ones(x.shape[-1:]))
        yield getattr(aten, name).Scalar, (x, 2)
    yield from ((aten.add.Tensor, (x, 2)), (aten.mul.Tensor, (x, torch.tensor(2.0))), (aten.pow.Tensor_Scalar, (x, 2)))
    yield from ((aten.clamp.default, (x, 0, 1)), (aten.where.self, (x > 0, x, torch.tensor(1.0))))
    yield from ((aten.masked_fill.Scalar, (x, x > 0, 1.0)), (aten.addcmul.default, (x, x, torch.tensor(2.0))))


@pytest.mark.parametrize(("shape", "steps"), LOOSE)
def test_strides_of_dimensions_of_one_place(shape, steps):
    """Nothing is read by such a stride, but a program sees it: each kernel gives it in its own way."""
    x = torch.empty_strided(shape, steps).fill_(0.5)
    for operator, arguments in loose_calls(x):
        real = operator(*arguments).stride()
        promised = promise(fake_result, operator, arguments, {})
        assert isinstance(promised, torch.Tensor)
        assert promised.stride() == real, operator


def keeping_calls(x):
    """Yield calls whose kernels make a tensor like their first argument."""
    for name in "zeros ones full rand randn randint empty".split():
        yield getattr(aten, f"{name}_like").default, (x, *{"full": (2.0,), "randint": (5,)}.get(name, ()))
    for name in "clone hardtanh nan_to_num sort".split():
        yield getattr(aten, name).default, (x,)
    first = torch.zeros(1, dtype=torch.int64)
    yield from ((aten.flip.default, (x, [0])), (aten.fill.Scalar, (x, 2.0)), (aten.frexp.Tensor, (x,)))
    if x.shape[0]:
        yield aten.index_put.default, (x, [first], x[:1])


PARTS = {
    "one row": lambda x: x[:1, 0],
    "one number": lambda x: x[:1, 0, 0],
    "one of one": lambda x: x[:1, :1],
    "nothing": lambda x: x[:, :0],
    "nothing, in another order": lambda x: x[:, :, :0].transpose(0, 1),
}


@pytest.mark.parametrize("open_sizes", [False, True])
@pytest.mark.parametrize("part", PARTS)
def test_dense_results_keep_strides_by_which_nothing_is_read(part, open_sizes):
    """Where elements fill their memory, or there are none, kernels ask for nothing else."""
    x = torch.arange(120.0).reshape(6, 5, 4)
    mode = FakeTensorMode(shape_env=ShapeEnv() if open_sizes else None)
    fake = mode.from_tensor(x) if open_sizes else fake_like(x, mode)
    with mode:
        fake = PARTS[part](fake)
    for (operator, arguments), (_, shown) in zip(
        keeping_calls(PARTS[part](x)), keeping_calls_on(fake, mode), strict=True
    ):
        real = operator(*arguments)
        with mode:
            promised = fake_result(operator, shown, {})
        for one, other in zip(every(promised), every(real), strict=True):
            assert (
                tuple(step if isinstance(step, int) else hint_value(step) for step in one.stride()) == other.stride()
            ), operator


def keeping_calls_on(fake, mode):
    with mode:
        return list(keeping_calls(fake))


def every(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("keep", [False, True])
def test_reductions_to_nothing_are_row_major(keep):
    x = torch.arange(120.0).reshape(6, 5, 4)
    for empty in (x[:, :0], x[:, :, :0].transpose(0, 1), x[:0].permute(1, 2, 0)):
        for dim in range(3):
            if not empty.shape[dim]:
                continue
            calls = [(aten.prod.dim_int, (empty, dim, keep), {})]
            for operator in (aten.sum.dim_IntList, aten.mean.dim, aten.amax.default, aten.logsumexp.default):
                calls.append((operator, (empty, [dim], keep), {}))
            for operator in (aten.var.correction, aten.var_mean.correction):
                calls.append((operator, (empty, [dim]), {"correction": 0, "keepdim": keep}))
            for operator, arguments, named in calls:
                promised = every(promise(fake_result, operator, arguments, named))
                real = every(operator(*arguments, **named))
                assert [t.stride() for t in promised] == [t.stride() for t in real], operator


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_copy_in_another_order_has_that_order(backend):
    """Its memory format is a keyword."""
    row_major = torch.contiguous_format
    x = torch.arange(4.0).reshape(1, 1, 2, 2).permute(0, 3, 1, 2)
    compiled = plumbline.compile(lambda x: (x.flatten(), x.clone(memory_format=row_major)), backend=backend)
    flat, copy = compiled(x)
    assert torch.equal(flat, x.flatten())
    assert copy.stride() == x.clone(memory_format=row_major).stride()
