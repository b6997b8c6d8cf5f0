"""A table of small torch-level programs: what compiled code must do exactly as eager does.

Each entry: a function of tensors, a maker of its inputs, and whether it is expected to run eagerly (with a reason)
because values cannot express it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

F = torch.nn.functional


def leaf(*shape, seed=0, dtype=torch.float32, grad=True):
    generator = torch.Generator().manual_seed(seed)
    value = torch.randn(*shape, generator=generator, dtype=dtype)
    return value.requires_grad_(grad and dtype.is_floating_point)


def square():
    return (leaf(4, 4),)


def branch():
    """A non-leaf that requires grad: the usual argument in the middle of a model."""
    return (leaf(4, 4) * 1.5,)


def pair():
    return leaf(4, 4), leaf(4, 4, seed=1)


def branch_pair():
    return leaf(4, 4) * 1.5, leaf(4, 4, seed=1) * 0.5


def buffer_and_weight():
    return leaf(4, 4, grad=False), leaf(4, 4, seed=1)


def plain():
    return (leaf(4, 4, grad=False),)


def integers():
    return (torch.arange(12).view(3, 4),)


def transposed():
    return (leaf(3, 5).t(),)


def every_second():
    return ((leaf(4, 8) * 1.0)[:, ::2],)


def layer():
    return leaf(3, 6), leaf(5, 6, seed=1), leaf(5, seed=2)


def image():
    return leaf(2, 3, 6, 6), leaf(4, 3, 3, 3, seed=1), leaf(4, seed=2)


def norm_state():
    return leaf(4, 3, 2, 2), leaf(3, seed=1), leaf(3, seed=2), torch.zeros(3), torch.ones(3), torch.tensor(0)


@dataclass(frozen=True)
class Program:
    """What to run on what.

    eager: the reason contains these words when the program is expected to run uncompiled.  order: gradients may
    differ by one rounding, because contributions that reach an input through the graph and past it (an output that
    aliases the input) are summed in another order.
    """

    function: Callable[..., object]
    inputs: Callable[[], tuple[torch.Tensor, ...]] = square
    eager: str = ""
    order: bool = False


PROGRAMS: dict[str, Program] = {}


def program(inputs=square, eager=""):
    def register(function):
        assert function.__name__ not in PROGRAMS
        PROGRAMS[function.__name__] = Program(function, inputs, eager)
        return function

    return register


def one_line(name, function, inputs=square, eager="", order=False):
    assert name not in PROGRAMS
    PROGRAMS[name] = Program(function, inputs, eager, order)


# -- plain mathematics -------------------------------------------------------------------------------------------

one_line("sin_plus_one_relu", lambda x: (x.sin() + 1).relu())
one_line("exp", lambda x: x.exp())
one_line("tanh_chain", lambda x: x.tanh().sigmoid().tanh())
one_line("reciprocal_root", lambda x: (x * x + 1).rsqrt())
one_line("matmul", lambda x, y: x @ y, pair)
one_line("linear", F.linear, layer)
one_line("linear_gelu", lambda x, w, b: F.gelu(F.linear(x, w, b)), layer)
one_line("softmax", lambda x: x.softmax(-1))
one_line("log_softmax_nll", lambda x: F.nll_loss(x.log_softmax(-1), torch.tensor([0, 1, 2, 3])))
one_line("cross_entropy", lambda x: F.cross_entropy(x, torch.tensor([3, 2, 1, 0]), label_smoothing=0.1))
one_line("layer_norm", lambda x, w, b: F.layer_norm(F.linear(x, w, b), (5,), b, b), layer)
one_line("convolution", lambda x, w, b: F.conv2d(x, w, b, padding=1).relu(), image)
one_line("pool", lambda x, w, b: F.max_pool2d(F.conv2d(x, w, b), 2), image)
one_line("average_pool", lambda x, w, b: F.adaptive_avg_pool2d(F.conv2d(x, w, b), 1).flatten(1), image)
one_line("group_norm", lambda x, w, b: F.group_norm(F.conv2d(x, w, b), 2), image)
one_line("attention", lambda x, y: F.scaled_dot_product_attention(x[None], y[None], x[None]), pair)
one_line("variance", lambda x: (x - x.mean(0)) / (x.var(0) + 1e-5).sqrt())
one_line("maximum", lambda x: x.max(1))
one_line("amax", lambda x: x.amax(0))
one_line("sort", lambda x: x.sort(1))
one_line("topk", lambda x: x.topk(2, 0))
one_line("cumsum", lambda x: x.cumsum(1).cumprod(0))
one_line("where", lambda x: torch.where(x > 0, x, x.exp()))
one_line("clamp", lambda x: x.clamp(-0.5, 0.5))
one_line("power", lambda x: x.abs().pow(1.5) + x**2 + 2**x)
one_line("einsum", lambda x, y: torch.einsum("ij,kj->ik", x, y), pair)
one_line("gather", lambda x: x.gather(1, torch.tensor([[0, 1], [2, 3], [1, 1], [0, 0]])))
one_line("index", lambda x: x[torch.tensor([0, 0, 2])])
one_line("index_mask_free", lambda x: x * (x > 0))
one_line("embedding", lambda w: F.embedding(torch.tensor([1, 1, 3]), w))
one_line("cat_stack", lambda x, y: (torch.cat([x, y]), torch.stack([y, x])), pair)
one_line("repeat", lambda x: x.repeat(2, 1) + x.repeat_interleave(2, 0))
one_line("expand_sum", lambda x: x[0].expand(3, 4).sum(0))
one_line("pad", lambda x: F.pad(x, (1, 2), value=3.0))
one_line("circular_pad", lambda x: F.pad(x[None], (1, 2), mode="circular"))
one_line("norm", lambda x: (x.norm(), torch.linalg.vector_norm(x, dim=1)))
one_line("solve", lambda x, y: torch.linalg.solve(x + 10 * torch.eye(4), y), pair)
one_line("eigenvalues", lambda x: torch.linalg.eig(x), square, "eigenvectors")
one_line("determinant", lambda x: torch.linalg.det(x))
one_line("roll_flip", lambda x: x.roll(1, 0).flip(1))
one_line("tril", lambda x: x.tril() + x.triu(1))
one_line("scatter_add", lambda x: torch.zeros(4, 4).scatter_add(0, torch.tensor([[0, 1, 2, 0]] * 4), x))


@program(pair)
def two_modulated_norms(x, table):
    first, shift, second, last = table.unbind(0)
    h = F.layer_norm(x, (4,)) * (1 + first) + shift
    return F.layer_norm(h, (4,)) * (1 + second) + last


one_line("mse", lambda x, y: F.mse_loss(x, y), pair)
one_line("huber", lambda x, y: F.smooth_l1_loss(x, y), pair)
one_line("prelu", lambda x, y: F.prelu(x, y[0, :1]), pair)
one_line("silu_glu", lambda x: (F.silu(x), F.glu(x)))
one_line("complex_abs", lambda x, y: torch.complex(x, y).abs(), pair)
one_line("fft", lambda x: torch.fft.rfft(x).abs())
one_line("double", lambda x: x.double().sin().float())
one_line("bfloat", lambda x: (x.bfloat16() * 2).float().sum())
one_line("integer_arithmetic", lambda i: (i // 3, i % 3, i / 2, i << 1, i > 4), integers)
one_line("integer_sum", lambda i: (i.sum(), i.float().mean(), i.bool().any()), integers)
one_line("arange_mix", lambda x: x + torch.arange(4) * torch.ones(4, 1))
one_line("scalar_tensors", lambda x: x * torch.tensor(2.0) + torch.tensor(3))
one_line("empty_tensors", lambda x: (x[4:], x[:, :0].sum(), x[4:].sin()))
one_line("zero_size_matmul", lambda x: x[:, :0] @ x[:0])
one_line("inf_at_zero", lambda x: ((x - x).sqrt(), x * 2))
one_line("none_gradient", lambda x, y: (x.sin(), y.sin()), pair)
one_line("unused_input", lambda x, y: x.sin(), pair)
one_line("detached", lambda x, y: x.detach() * y, pair)
one_line("zero_gradient", lambda x: x.floor() + x.sign())
one_line("non_differentiable", lambda x: (x.argmax(), x > 0, x.sin(), x.round().long()))
one_line("transposed_input", lambda x: (x * 2, x @ x.t(), x.contiguous()), transposed)
one_line("strided_input", lambda x: (x.exp(), x.sum(0), x.reshape(-1)), every_second, order=True)
one_line("channels_last", lambda x, w, b: F.conv2d(x.to(memory_format=torch.channels_last), w, b) * 2, image)
one_line("shared_use", lambda x: x.sin() * x.cos() + x.sin())
one_line("second_norm", lambda x: F.normalize(x, dim=1))

# -- constants and odd outputs -----------------------------------------------------------------------------------

one_line("no_tensor_outputs", lambda x: (x.sin(), None, 3, 2.5, True))
one_line("same_output_twice", lambda x: (lambda y: (y, y))(x.sin()))
one_line("equal_outputs", lambda x: (x + 1, x + 1))
one_line("literal", lambda x: (torch.tensor([1.0, 2.0]), x.sum()))
one_line("created", lambda x: (torch.zeros(3), torch.ones_like(x), torch.full((2,), 7), x.new_empty(0)))
one_line("nothing_of_input", lambda x: torch.arange(5))
one_line("born_leaf", lambda x: x.clone().detach().requires_grad_(True).abs().sqrt(), square, "leaf")
one_line("returned_leaf", lambda x: (x.detach() * 2).requires_grad_(), square, "leaf")

# -- aliases -----------------------------------------------------------------------------------------------------

one_line("input_itself", lambda x: x)
one_line("input_and_more", lambda x: (x, x * 2, x), branch)
one_line("view_of_input", lambda x: x[1])
one_line("views_of_input", lambda x: (x.t(), x.view(-1), x[0], x[:, 1:3], x.unsqueeze(0)), branch)
one_line("split_of_input", lambda x: x.split(2))
one_line("unbind_of_input", lambda x: x.unbind(1)[1:3])
one_line("detach_of_input", lambda x: (x.detach(), x * 1))
one_line("expand_of_input", lambda x: x[:1].expand(3, 4))
one_line("diagonal_of_input", lambda x: x.diagonal())
one_line("real_view", lambda x: torch.view_as_real(torch.view_as_complex(x.view(4, 2, 2))), square)
one_line("bits_of_input", lambda x: x.view(torch.int32), plain)
one_line("bits_copied", lambda x: x.view(torch.int32) * 2, plain)
one_line("as_strided_of_input", lambda x: x.as_strided((3,), (2,)))
one_line("as_strided_copy", lambda x: torch.as_strided_copy(x, (3,), (2,)), every_second)
one_line("view_of_result", lambda x: x.sin()[0])
one_line("result_and_view", lambda x: (lambda y: (y, y[0], y.t()))(x.sin()))
one_line("two_views_of_result", lambda x: (lambda y: (y[0], y[1:]))(x.sin()))
one_line("chunks_of_result", lambda x: x.sin().chunk(2, 1))
one_line("result_and_detached", lambda x: (lambda y: (y, y.detach()))(x.sin()))
one_line("reshape_copies", lambda x: x.t().reshape(-1))
one_line("reshape_views", lambda x: x.reshape(2, 8))
one_line("contiguous_is_input", lambda x: x.contiguous())
one_line("to_is_input", lambda x: x.to(torch.float32))
one_line("eval_dropout", lambda x: F.dropout(x, 0.5, training=False))


@program(branch)
def eval_dropout_then_write(x):
    y = F.dropout(x, 0.5, training=False)
    y.add_(1)
    return y


@program()
def no_grad_view(x):
    with torch.no_grad():
        y = x[0]
    return y, x * 2


# -- mutation ----------------------------------------------------------------------------------------------------

one_line("write_input", lambda x: x.mul_(2), branch)
one_line("write_and_read", lambda x: (x.mul_(2), x.sin())[1], branch)
one_line("write_twice", lambda x: (x.add_(1), x.mul_(3), x.exp())[2], branch)
one_line("write_view", lambda x: (x[0].mul_(2), x.sin())[1], branch)
one_line("write_view_returned", lambda x: x[0].mul_(2), branch)
one_line("write_leaf_raises", lambda x: x.mul_(2), square, "RuntimeError")
one_line("write_leaf_view_raises", lambda x: x[0].mul_(2), square, "RuntimeError")
one_line("write_saved_raises", lambda x: (lambda y: (y.mul_(2), y)[1])(x.exp()), square, "RuntimeError")
one_line("write_plain", lambda x: x.add_(1), plain)
one_line("write_plain_view", lambda x: (x[1:].zero_(), None)[1], plain)
one_line("buffer_gets_history", lambda b, w: (b.add_(w), b * 2)[1], buffer_and_weight)
one_line("buffer_kept_plain", lambda b, w: (b.add_(w.detach()), b * w)[1], buffer_and_weight)
one_line("copy_into", lambda x, y: x.copy_(y), branch_pair)
one_line("copy_is_no_alias", lambda x: (lambda z: (z.copy_(x), z)[1])(torch.empty(4, 4)))
one_line("swap", lambda x, y: (lambda t: (x.copy_(y), y.copy_(t))[1])(x.clone()), branch_pair)
one_line("fill", lambda x: (x.fill_(3), x * 2)[1], branch)
one_line("zero_half", lambda x: (x[:, :2].zero_(), x * x)[1], branch)
one_line("masked_write", lambda x: x.masked_fill_(x > 0, -1.0), branch)
one_line("index_write", lambda x: (x.__setitem__(torch.tensor([0, 2]), 5.0), x.sum())[1], branch)
one_line("row_write", lambda x, y: (x.__setitem__(1, y[0]), x * 2)[1], branch_pair)
one_line("own_flip", lambda x: x.copy_(x.flip(0)), branch)
one_line("shift_rows", lambda x: (x.__setitem__(slice(1, None), x[:-1].clone()), x)[1], plain)
one_line("columns_to_columns", lambda x: (x[:, :2].copy_(x[:, 2:]), x * 1)[1], plain)
one_line("overlapping_columns", lambda x: x[:, :3].copy_(x[:, 1:]), plain, "overlapping")
one_line("overlapping_rows", lambda x: x[1:].copy_(x[:-1]), plain, "overlapping")
one_line("write_transposed", lambda x: (x.add_(1), x * 2)[1], lambda: (leaf(3, 5).t() * 1,))
one_line("write_strided", lambda x: (x.mul_(2), x.sum(0))[1], every_second)
one_line(
    "strided_write_then_as_strided",
    lambda x: (x.add_(1), torch.as_strided_copy(x, (3,), (2,)))[1],
    lambda: (torch.arange(10)[::2],),
    "as_strided",
)
one_line("bits_write", lambda x: (x.view(torch.int32).copy_(torch.arange(16).view(4, 4)), x + 3)[1], plain)
one_line("integer_write", lambda i: (i.add_(2), i[0].mul_(3), i * 1)[2], integers)
one_line("out_argument", lambda x, b: torch.sin(x.detach(), out=b), lambda: (leaf(4, 4), torch.zeros(4, 4)))
one_line("write_then_view_out", lambda x: (x.mul_(2), x[0], x.t())[1:], branch)
one_line("view_then_write_then_out", lambda x: (lambda v: (x.mul_(2), v)[1])(x[0]), branch)
one_line("geometry_of_input", lambda x: (x.t_(), x * 1)[1], plain, "sizes")
one_line("geometry_of_result", lambda x: (lambda y: (y.t_(), y)[1])(x.sin()))
one_line("quantile", lambda x: torch.quantile(x, torch.tensor([0.1, 0.6]), dim=0, keepdim=True))
one_line("resize_result", lambda x: (lambda y: (y.resize_(2, 2), y)[1])(x.detach() * 2), square, "memory")
one_line("detach_then_write", lambda a: (lambda t: (a.mul_(2), a, t)[1:])(a.detach()), branch)
one_line("write_through_detach", lambda a: (a.detach().mul_(2), a * 3)[1], branch)
one_line("write_through_data", lambda a: (a.data.mul_(2), a * 3)[1], branch)
one_line("intermediate_write", lambda x: (lambda y: (y[0].mul_(3), y.add_(x), y)[2])(x * 2))
one_line("view_of_intermediate_write", lambda x: (lambda y, v: (y.mul_(2), v * y[0])[1])(*(lambda y: (y, y[1]))(x * 2)))
one_line("foreach_write", lambda x, y: (torch._foreach_mul_([x, y], 2.0), x + y)[1], branch_pair)
one_line("accumulate", lambda x: (lambda s: [s.add_(x[i]) for i in range(4)][-1])(torch.zeros(4)))
one_line("index_add", lambda x: torch.zeros(4, 4).index_add_(0, torch.tensor([0, 0, 1, 3]), x))
one_line(
    "scatter_copy_outlives",
    lambda x, y: (lambda z: (x.zero_(), z)[1])(torch.slice_scatter(x, y[:2], 0, 1, 3)),
    branch_pair,
)
one_line(
    "clone_after_index_write",
    lambda c, x: (c.__setitem__(torch.tensor([0]), x), c.clone())[1],
    lambda: (torch.tensor([0, 0]), torch.tensor([2])),
)
one_line(
    "repeated_index_write",
    lambda x, y: (lambda i: (y.__setitem__(i, y[i] + y[i]), y)[1])(x + 10),
    lambda: (torch.full((1, 2), -10), leaf(2, 8, grad=False)),
)
one_line(
    "squeezed_alias", lambda a: (lambda c: (a.__setitem__(0, 2), c)[1])(a[0:1].squeeze()), lambda: (torch.tensor([1]),)
)
one_line(
    "move_rows",
    lambda t, s: (t.__setitem__(slice(0, None), s), s.add_(1))[1],
    lambda: (torch.zeros(3, 4), torch.arange(12.0).view(3, 4)),
)


@program()
def write_leaf_without_grad(x):
    with torch.no_grad():
        x.mul_(2)
    return x * 3


@program(branch)
def write_without_grad(x):
    with torch.no_grad():
        x.add_(1)
    return x.sin()


@program(branch)
def both_kinds_of_write(x):
    with torch.no_grad():
        x.add_(1)
    x.mul_(2)
    return x.sin()


@program(pair)
def gradient_descent(w, x):
    with torch.no_grad():
        w.sub_(0.1 * x)
    return w @ x


@program(plain)
def dtype_view_read_before_write(x):
    y = x.view(torch.int32) * 2
    y.sub_(-4)
    x[:, 2:5] = 2
    return y.view(torch.int64)


@program(norm_state)
def batch_norm_training(x, w, b, mean, variance, count):
    count.add_(1)
    return F.batch_norm(x, mean, variance, w, b, training=True)


one_line("batch_norm_eval", lambda x, w, b, m, v, c: F.batch_norm(x, m, v, w, b), norm_state)
one_line("batch_norm_no_state", lambda x, w, b, m, v, c: F.batch_norm(x, None, None, w, b, True), norm_state)

# -- grad modes, autocast, custom functions ------------------------------------------------------------------------


@program()
def no_grad_twin(x):
    with torch.no_grad():
        o = x + 1
    return o, x + 1


@program()
def no_grad_middle(x):
    y = x.sin()
    with torch.no_grad():
        scale = y.abs().max()
    return y / scale


@program()
def enable_grad_inside(x):
    with torch.no_grad(), torch.enable_grad():
        return x.sin()


@program(square, "inference")
def inference_inside(x):
    with torch.inference_mode():
        return x * 2


@program(layer)
def autocast_inside(x, w, b):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = F.linear(x, w, b)
        z = F.linear(y, w.t())
    return y, z.float() * 2


@program()
def set_grad_enabled_flat(x):
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    y = x * 2
    torch._C._set_grad_enabled(before)
    return y, x * 3


class TwoAndThree(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, c):
        return a * 2 + c * 3

    @staticmethod
    def backward(ctx, g):
        return None, g * 3


class WrongSine(torch.autograd.Function):
    """A backward that is not the derivative: it must be the one that runs."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x + 7


class WrongView(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, g):
        return g.view(4, 4) * 10


one_line("custom_twice", lambda x: TwoAndThree.apply(x, x))
one_line("custom_backward", lambda x: WrongSine.apply(x * 2) + x)
one_line("custom_view", lambda x: WrongView.apply(x), branch, "history")
one_line("custom_view_of_result", lambda x: WrongView.apply(x * 2))

# -- random numbers --------------------------------------------------------------------------------------------------

one_line("dropout", lambda x: F.dropout(x, 0.4))
one_line("dropout_twice", lambda x: F.dropout(F.dropout(x, 0.4).relu(), 0.2))
one_line("rand_forms", lambda x: x + torch.rand(4) * torch.randn(4, 1) + torch.rand_like(x) + torch.randint(3, (4,)))
one_line("unused_draw", lambda x: (torch.rand(3), x * torch.rand(4))[1])
one_line("noise_in_place", lambda x: x * torch.empty(4, 4).uniform_() + torch.empty(4).normal_())
one_line("noise_transposed", lambda x: x * torch.empty(4, 4).t().bernoulli_(0.5))
one_line("unused_noise_transposed", lambda x: (torch.empty(4, 4).t().bernoulli_(0.5), x * 1)[1])
one_line("permutation", lambda x: x[torch.randperm(4)])
one_line("multinomial", lambda x: torch.multinomial(x.detach().softmax(-1), 2))
one_line("rrelu", lambda x: F.rrelu(x, training=True))
one_line(
    "attention_dropout", lambda x, y: F.scaled_dot_product_attention(x[None], y[None], x[None], dropout_p=0.3), pair
)
GENERATOR = torch.Generator()
one_line("own_generator", lambda x: x * torch.rand(4, generator=GENERATOR.manual_seed(3)), square, "generator")
one_line("seeds", lambda x: (torch.rand(2), torch.manual_seed(3), x * torch.rand(4))[::2], square, "seeds")
one_line("channel_dropout", lambda x: F.feature_alpha_dropout(x, 0.5, training=True))
one_line("write_random", lambda x: x.uniform_(), plain)


@program(square, "seeds")
def seeds_aside(x):
    with torch.random.fork_rng():
        torch.manual_seed(5)
        noise = torch.rand(4)
    return x * noise + torch.rand(4)


@program(square, "backward itself")
def backward_inside(x):
    x.sin().sum().backward()
    return x * 2


# -- what cannot be traced ---------------------------------------------------------------------------------------------

one_line("item", lambda x: x * x.sum().item(), square, "")
one_line("data_dependent_size", lambda x: x[x > 0], square, "")
one_line("raises", lambda x: x @ x[:3], square, "RuntimeError")
