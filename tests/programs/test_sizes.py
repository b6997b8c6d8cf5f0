"""Sizes: a size that changed becomes a symbol, which flows through arithmetic, range, view, slicing and branches."""

import math

import torch
import torch.nn.functional as F  # noqa: N812 - as everyone writes it

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program


def rows(n, m=3):
    """Return a maker of an (n, m) tensor."""
    return lambda: (torch.arange(float(n * m)).reshape(n, m) / 10,)


def growing(*sizes, m=3):
    """Return calls: the first new size compiles (a symbol from then on), the others do not."""
    return tuple((rows(n, m), number == 0) for number, n in enumerate(sizes))


def marked(n, dimension=0):
    def make():
        t = rows(n)()[0]
        torch._dynamo.mark_dynamic(t, dimension) if False else None
        t.__dict__.setdefault("_plumbline_dynamic", set()).add(dimension)
        return (t,)

    return make


@program(make=rows(4), then=growing(5, 6, 17))
def pointwise_over_sizes(a):
    return torch.relu(a) + 1


@program(make=rows(4), then=((rows(5), True), (rows(6), True), (rows(5), False)), dynamic=False)
def without_dynamic(a):
    return a * 2


@program(make=rows(4), then=((rows(5), False), (rows(9), False)), dynamic=True)
def dynamic_from_the_start(a):
    return a * 2


@program(make=rows(4), then=((rows(5, 4), True), (rows(6, 7), False)))
def both_sizes_change(a):
    return (a * 2).sum(0) + a.shape[1]


@program(make=rows(4), then=growing(5, 6, 7))
def size_in_arithmetic(a):
    n = a.shape[0]
    return a * n + (n * 2 - 1) // 3 + n % 2 + n / 2


@program(make=rows(4), then=growing(5, 6, 7))
def size_in_factories(a):
    n = a.shape[0]
    return a + torch.arange(n)[:, None] + torch.zeros(n, 1) + torch.ones(a.size(0), 3)


@program(make=rows(4), then=growing(5, 6, 7))
def size_in_view_and_reshape(a):
    n, m = a.shape
    return a.view(n * m), a.reshape(m, n), a.view(-1, m).sum(1), a.expand(2, n, m)


@program(make=rows(4), then=growing(6, 8, 10))
def size_in_slices(a):
    half = a.shape[0] // 2
    return a[:half], a[half:], a[1 : a.size(0) - 1], a[-1]


@program(make=rows(4), then=growing(5, 6, 7), graphs=0)
def size_is_returned(a):
    return a.shape[0], a.shape, a.numel(), len(a), a.shape[0] + 1


@program(make=rows(4), then=growing(5, 6, 7))
def size_in_a_list_and_dict(a):
    sizes = [a.shape[0], 3]
    named = {"n": a.shape[0]}
    return a.reshape(sizes) + named["n"], sizes


@program(make=rows(4), then=((rows(5), True), (rows(6), False), (rows(20), True), (rows(30), False)))
def branch_on_a_size(a):
    if a.shape[0] > 10:
        return a * 2
    return a * 3


@program(make=rows(4), then=((rows(5), True), (rows(1), True), (rows(7), False)))
def one_is_special(a):
    return a * 2


@program(make=rows(4), then=((rows(5), True), (rows(0), True)))
def zero_is_special(a):
    return a.sum()


@program(make=rows(3), then=((rows(4), True), (rows(5), True)))
def range_over_a_size_unrolls(a):
    total = 0
    for i in range(a.shape[0]):
        total = total + a[i] * i
    return total


@program(make=rows(4), then=growing(5, 6, 7))
def softmax_and_matmul(a):
    return F.softmax(a @ a.T / math.sqrt(a.shape[0]), dim=-1) @ a


@program(make=rows(4), then=growing(5, 6, 7))
def cat_and_stack(a):
    return torch.cat([a, a]), torch.stack([a, a * 2]).sum(0), F.pad(a, (0, 1))


@program(make=rows(4), then=growing(5, 6, 7))
def causal_mask(a):
    n = a.shape[0]
    mask = torch.tril(torch.ones(n, n, dtype=torch.bool))
    return (a @ a.T).masked_fill(~mask, -1.0)


@program(make=rows(4), then=growing(6, 8, 12))
def pairs_by_view(a):
    return a.view(a.shape[0] // 2, 2, 3).mean(1)


@program(make=rows(4), then=growing(5, 6, 7))
def minimum_of_a_size(a):
    return a[: min(a.shape[0], 2)] * max(a.shape[0], 3)


@program(make=rows(4), then=growing(5, 6, 7))
def size_converted(a):
    n = a.shape[0]
    return a * float(n), int(n) + 1, bool(n)


@program(
    make=lambda: (rows(4)()[0], rows(4)()[0]),
    then=((lambda: (rows(5)()[0], rows(5)()[0]), True), (lambda: (rows(6)()[0], rows(6)()[0]), False)),
)
def two_tensors_of_one_size(a, b):
    return a + b


@program(
    make=lambda: (rows(4)()[0], rows(5)()[0]),
    then=((lambda: (rows(6)()[0], rows(7)()[0]), True), (lambda: (rows(9)()[0], rows(8)()[0]), False)),
)
def two_tensors_of_different_sizes(a, b):
    return torch.cat([a, b]) * 2


@program(
    make=lambda: (rows(4)()[0], 2),
    then=((lambda: (rows(4)()[0], 3), True), (lambda: (rows(4)()[0], 5), False), (lambda: (rows(4)()[0], 9), False)),
)
def changing_integer_becomes_a_symbol(a, k):
    return a * k + k


@program(
    make=lambda: (rows(4)()[0], 2.5), then=((lambda: (rows(4)()[0], 3.5), True), (lambda: (rows(4)()[0], 5.5), False))
)
def changing_float_becomes_a_symbol(a, k):
    return a * k


@program(make=marked(4), then=((marked(5), False), (marked(8), False)))
def marked_dimension(a):
    return a * 2


@program(make=lambda: ([rows(4)()[0]],), then=((lambda: ([rows(5)()[0]],), True), (lambda: ([rows(7)()[0]],), False)))
def tensor_in_a_list_changes_size(xs):
    return xs[0] * 2


@program(make=rows(4), then=growing(5, 6), graphs=2, breaks=1)
def symbol_across_a_break(a):
    n = a.shape[0]
    b = a * n
    print("here")
    return b + n


@program(make=rows(4), then=growing(5, 6), backward=True)
def gradients_over_sizes(a):
    w = torch.ones(3, requires_grad=True)
    return (a * w).sum() / a.shape[0]


@program(make=rows(4), then=((rows(5), True), (rows(6), False)))
def size_as_a_string_specialises_nothing_else(a):
    return a * 2, a.dim()


@program(make=rows(4), then=growing(5, 6))
def view_chain_with_minus_one(a):
    b = a.unsqueeze(0).repeat(2, 1, 1)
    return b.flatten(0, 1).unflatten(0, (2, -1)).transpose(0, 1).contiguous()


@program(make=rows(4), then=growing(5, 6))
def embedding_positions(a):
    positions = torch.arange(a.shape[0], device=a.device).unsqueeze(0)
    return F.one_hot(positions % 3, 3).to(a.dtype) + a


@program(make=rows(4), then=growing(5, 6, 7, 9))
def size_in_powers_and_roots(a):
    n = a.shape[0]
    return a * n**2 + n * n, a / n**0.5, a / math.sqrt(n), a * (1 / n)


@program(make=rows(4), then=growing(5, 6, 7, 9))
def size_in_rounding_and_division(a):
    n = a.shape[0]
    whole, rest = divmod(n, 3)
    return a * int(n / 2) + round(n / 3), math.floor(n / 2), math.ceil(n / 3), -(-n // 4), whole, rest, abs(-n)


@program(make=rows(4), then=growing(5, 6, 7, 9))
def size_as_a_position(a):
    n = a.shape[0]
    return a[n // 2], a[n - 1, :2], a[..., None][n // 2 - 1], a[0 : n // 2, 1]


@program(make=rows(4), then=growing(5, 6, 7, 9))
def size_as_a_position_written_to(a):
    b = torch.zeros(a.shape[0] + 1, 3)
    b[1:] = a
    b[a.shape[0]] = 5
    b[a.shape[0] // 2, 1] += 1
    return b


@program(make=rows(4), then=growing(5, 6, 7, 9))
def size_as_a_tensor(a):
    return torch.tensor(a.shape[0]) + a, torch.tensor(a.shape[0] / 2), a * math.prod(a.shape) + sum(a.shape)


@program(make=rows(4), then=growing(5, 6, 9))
def size_in_interpolation(a):
    return F.interpolate(a[None, None], size=(a.shape[0] * 2, 6)), F.interpolate(a[None, None], scale_factor=2.0)


@program(make=rows(6), then=growing(8, 10, 12))
def size_in_a_division_of_a_tensor(a):
    n = a.shape[0]
    return torch.cat([a, a]).split([n, n]), a.chunk(2), a.unfold(0, 2, 1), a.roll(n // 2, 0)


@program(make=rows(4), then=((rows(5), True), (rows(6), True)))
def size_in_text_is_fixed(a):
    return a * 2, f"{a.shape[0]} rows"


@program(make=rows(4), then=growing(5, 6, 7))
def size_in_a_dictionary_that_is_returned(a):
    held = {"n": a.shape[0] * 2}
    return a + held["n"], held


@program(make=rows(6), then=((rows(5), True), (rows(7), False), (rows(8), True), (rows(10), False)))
def parity_of_a_size(a):
    return a * 2 if a.shape[0] % 2 else a * 3


@program(
    make=lambda: (rows(4)()[0], 2.5),
    then=(
        (lambda: (rows(4)()[0], 3.5), True),
        (lambda: (rows(4)()[0], 0.1), False),
        (lambda: (rows(4)()[0], -7.25), False),
    ),
)
def changing_float_keeps_its_rounding(a, k):
    return a * (k * 0.1 * 3), k * 0.1 * 3, k * (0.1 * 3), (k + 0.1) + 0.2


@program(
    make=lambda: (rows(4)()[0], 2.5),
    then=(
        (lambda: (rows(4)()[0], 3.5), True),
        (lambda: (rows(4)()[0], float("nan")), True),
        (lambda: (rows(4)()[0], float("inf")), True),
        (lambda: (rows(4)()[0], 4.5), False),
    ),
)
def changing_float_is_not_finite(a, k):
    return a * (k - k)


@program(
    make=lambda: (rows(4)()[0], rows(4)()[0]),
    then=(
        (lambda: (rows(5)()[0], rows(5)()[0]), True),
        (lambda: (rows(6)()[0], rows(9)()[0]), False),
    ),
)
def equal_sizes_need_not_stay_equal(a, b):
    return a.sum(0) + b.sum(0)


def batch(start, n):
    """Return a maker of a batch that starts inside its memory."""
    return lambda: (torch.arange(300.0).reshape(100, 3)[start : start + n],)


@program(make=batch(0, 4), then=((batch(4, 5), True), (batch(9, 7), False), (batch(50, 31), False)))
def batches_of_one_tensor(a):
    return a * 2 + a.sum(0)


def columns(n):
    return lambda: (torch.arange(3.0 * n).reshape(3, n).t(),)


@program(make=columns(4), then=((columns(5), True), (columns(9), False), (rows(9), True), (rows(12), False)))
def transposed_inputs(a):
    return a * 2, a.t() + 1, a.stride(), a.is_contiguous()


def image(n):
    return lambda: (
        torch.arange(6.0 * n * (n + 1)).reshape(2, 3, n, n + 1).contiguous(memory_format=torch.channels_last),
    )


@program(make=image(4), then=((image(5), True), (image(8), False)))
def channels_last_inputs(a):
    return a * 2, F.conv2d(a, torch.ones(2, 3, 3, 3)), a.stride()


@program(make=batch(0, 4), then=((batch(4, 5), True), (batch(4, 6), False), (batch(5, 6), True)))
def offset_is_read(a):
    return a * 2, a.storage_offset(), a[1:].storage_offset()


@program(
    make=lambda: (rows(4)()[0], 2),
    then=(
        (lambda: (rows(5)()[0], 3), False),
        (lambda: (rows(4)()[0], -5), False),
        (lambda: (rows(4)()[0], 0), False),
    ),
    dynamic=True,
)
def whole_numbers_are_open_from_the_start(a, k):
    return a * k + k, k - 1


def both(backend):
    """Return settings: sizes open from the first call, one graph for all of them."""
    return {"backend": backend, "dynamic": True}


def sizes_only(*sizes):
    """Return calls of which none compiles."""
    return tuple((rows(n), False) for n in sizes)


def differentiable(n):
    return lambda: (rows(n)()[0].requires_grad_(),)


@program(
    make=differentiable(4),
    then=tuple((differentiable(n), False) for n in (5, 2, 33)),
    backward=True,
    **both("aot_eager"),
)
def traced_forward_and_backward(a):
    w = torch.linspace(-1, 1, 3)
    return (F.softmax(a @ a.T, -1) @ (a * w)).mean() * a.shape[0]


@program(make=rows(4), then=sizes_only(5, 3, 33), **both("aot_eager"))
def traced_writes_and_views(a):
    b = a.clone()
    b[1:] += a[:-1]
    a.mul_(2)
    return b, a[a.shape[0] // 2 :], a.view(-1), a.shape[0] + 1


@program(
    make=lambda: (rows(4)()[0], 2),
    then=(
        (lambda: (rows(4)()[0], 3), True),
        (lambda: (rows(4)()[0], -5), False),
        (lambda: (rows(4)()[0], 0), False),
    ),
    backend="aot_eager",
)
def traced_with_a_changing_number(a, k):
    return a * k + k, k - 1


@corpus.parametrize()
def test_program(program):
    check(program)
