"""Programs with tensors that are not plain: subclasses, nested, sparse, quantised, views, transforms, lazy bits."""

import copy
import warnings

import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn import functional
from torch.utils import _pytree as pytree

from .registry import Registry, gradients, inputs

TENSOR_KINDS = Registry()


class Tagged(torch.Tensor):
    """A subclass that only bears a name."""


class Counted(torch.Tensor):
    """A subclass that counts the functions called with it."""

    calls = 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.calls += 1
        return super().__torch_function__(function, types, args, kwargs or {})


class Labelled(torch.Tensor):
    """A subclass with an attribute that its results inherit."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        out = super().__torch_function__(function, types, args, kwargs or {})
        labels = [one.label for one in pytree.tree_leaves(args) if isinstance(one, Labelled) and hasattr(one, "label")]
        if isinstance(out, Labelled) and labels:
            out.label = labels[0]
        return out


class TwoHalves(torch.Tensor):
    """A wrapper of two tensors whose sum is its value."""

    @staticmethod
    def __new__(cls, left, right):
        return torch.Tensor._make_wrapper_subclass(
            cls, left.shape, dtype=left.dtype, requires_grad=left.requires_grad, strides=left.stride()
        )

    def __init__(self, left, right):
        self.left, self.right = left, right

    def __tensor_flatten__(self):
        return ["left", "right"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return TwoHalves(inner["left"], inner["right"])

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def half(name):
            return pytree.tree_map_only(TwoHalves, lambda one: getattr(one, name), (args, kwargs or {}))

        outs = [function(*given, **named) for given, named in (half("left"), half("right"))]
        flat = [pytree.tree_leaves(out) for out in outs]
        spec = pytree.tree_structure(outs[0])
        pairs = [TwoHalves(a, b) if isinstance(a, torch.Tensor) else a for a, b in zip(*flat, strict=True)]
        return pytree.tree_unflatten(pairs, spec)


@TENSOR_KINDS
def tagged_subclass(call):
    x = inputs().as_subclass(Tagged).requires_grad_()
    y = call(lambda x: (x * 2).sin(), x)
    y.sum().backward()
    return y, x


@TENSOR_KINDS
def counting_subclass(call):
    Counted.calls = 0
    x = inputs().as_subclass(Counted)
    return [call(lambda x: (x * 2).sin(), x) for _ in range(2)], Counted.calls


@TENSOR_KINDS
def labelled_subclass(call):
    x = inputs().as_subclass(Labelled)
    x.label = "rows"
    return call(lambda x: x.relu() + 1, x)


@TENSOR_KINDS
def subclass_made_inside(call):
    return call(lambda x: (x * 2).as_subclass(Tagged), inputs())


@TENSOR_KINDS
def subclass_as_parameter(call):
    model = nn.Linear(4, 4)
    model.weight = nn.Parameter(model.weight.detach().as_subclass(Tagged))
    call(model, inputs()).sum().backward()
    return gradients(model)


@TENSOR_KINDS
def wrapper_of_two(call):
    x = TwoHalves(inputs(), inputs())
    return call(lambda x: (x * 2 + 1).t(), x).left


@TENSOR_KINDS
def wrapper_of_two_made_inside(call):
    x = inputs().requires_grad_()
    y = call(lambda x: TwoHalves(x * 2, x + 1), x)
    (y.left.sum() + y.right.sum()).backward()
    return y.left, y.right, x


@TENSOR_KINDS
def wrapper_of_two_as_parameter(call):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(TwoHalves(torch.ones(4), torch.ones(4) * 2))

        def forward(self, x):
            both = self.scale * 2
            return x * both.left + both.right

    return call(Scaled(), inputs())


@TENSOR_KINDS
def wrapper_of_two_written_to(call):
    x = TwoHalves(torch.ones(2, 4), torch.ones(2, 4))

    def write(x):
        x.left.mul_(2)
        return x.left.sum()

    return [call(write, x) for _ in range(2)], x.left, x.right


@TENSOR_KINDS
def function_mode_outside(call):
    class Counting(torch.overrides.TorchFunctionMode):
        count = 0

        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    with Counting():
        return call(lambda x: x.sin() * 2, inputs())


@TENSOR_KINDS
def function_mode_inside(call):
    class Doubling(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            return out * 2 if function is torch.sin else out

    def inside(x):
        with Doubling():
            return torch.sin(x)

    return call(inside, inputs())


@TENSOR_KINDS
def dispatch_mode_inside(call):
    class Logging(torch.utils._python_dispatch.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.names.append(str(function))
            return function(*args, **(kwargs or {}))

    def inside(x):
        with Logging() as log:
            y = x.sin() * 2
        return y, log.names

    return call(inside, inputs())


@TENSOR_KINDS
def flops_counted_inside(call):
    def counted(x):
        with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
            y = x @ x.t()
        return y, counter.get_total_flops()

    return call(counted, inputs())


@TENSOR_KINDS
def default_device_inside(call):
    def made(x):
        with torch.device("meta"):
            y = torch.ones(3)
        return x, y.shape, y.device

    return call(made, inputs())


@TENSOR_KINDS
def nested_tensors(call):
    nested = torch.nested.nested_tensor([inputs(2, 4), inputs(3, 4)])
    return call(lambda n: torch.nested.to_padded_tensor(n * 2, 0.0), nested)


@TENSOR_KINDS
def nested_tensors_made_inside(call):
    a, b = inputs(2, 4).requires_grad_(), inputs(3, 4).requires_grad_()
    n = call(lambda a, b: torch.nested.as_nested_tensor([a, b]), a, b)
    torch.nested.to_padded_tensor(n, 0.0).sum().backward()
    return a, b


@TENSOR_KINDS
def jagged_tensors(call):
    nested = torch.nested.nested_tensor([inputs(2, 4), inputs(3, 4)], layout=torch.jagged)
    return call(lambda n: (n * 2).values(), nested)


@TENSOR_KINDS
def jagged_tensors_made_inside(call):
    def made(x, offsets):
        return torch.nested.nested_tensor_from_jagged(x, offsets).sum(-1).values()

    x = inputs(5, 4).requires_grad_()
    call(made, x, torch.tensor([0, 2, 5])).sum().backward()
    return x


@TENSOR_KINDS
def linear_over_jagged(call):
    nested = torch.nested.nested_tensor([inputs(2, 4), inputs(3, 4)], layout=torch.jagged)
    model = nn.Linear(4, 3)
    y = call(model, nested)
    y.values().sum().backward()
    return y.values(), gradients(model)


@TENSOR_KINDS
def sparse_tensors(call):
    x = torch.eye(3).to_sparse()
    return call(lambda s, y: (torch.sparse.mm(s, y), s * 2, s.coalesce().indices()), x, inputs(3, 2))


@TENSOR_KINDS
def sparse_rows(call):
    def made(y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = torch.eye(3).to_sparse_csr()
        return rows @ y, rows

    return call(made, inputs(3, 2))


@TENSOR_KINDS
def sparse_rows_given(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = torch.eye(3).to_sparse_csr()
    return call(lambda rows, y: rows @ y, rows, inputs(3, 2))


@TENSOR_KINDS
def sparse_parameter_gradient(call):
    table = nn.Embedding(6, 4, sparse=True)
    call(lambda ids: table(ids).sin(), torch.tensor([1, 2, 1])).sum().backward()
    return table.weight.grad


@TENSOR_KINDS
def sparse_leaf(call):
    x = torch.eye(3).to_sparse().requires_grad_()
    y = inputs(3, 2)
    call(lambda s: torch.sparse.mm(s, y), x).sum().backward()
    return x.grad


@TENSOR_KINDS
def sparse_buffer(call):
    class Graph(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("adjacency", torch.eye(3).to_sparse())
            self.linear = nn.Linear(4, 2)

        def forward(self, x):
            return torch.sparse.mm(self.adjacency, self.linear(x))

    model = Graph()
    outs = [call(model, inputs(3, 4)) for _ in range(2)]
    outs[-1].sum().backward()
    return outs, gradients(model)


@TENSOR_KINDS
def quantised_tensors(call):
    def quantise(x):
        q = torch.quantize_per_tensor(x.float(), 0.1, 3, torch.qint8)
        return q, q.dequantize(), q.int_repr()

    return call(quantise, inputs())


@TENSOR_KINDS
def quantised_tensor_given(call):
    q = torch.quantize_per_tensor(inputs().float(), 0.1, 3, torch.qint8)
    return call(lambda q: q.dequantize() * 2, q)


@TENSOR_KINDS
def quantised_by_channel(call):
    def quantise(x):
        scales = torch.ones(2, dtype=torch.float64)
        return torch.quantize_per_channel(x.float(), scales, torch.zeros(2), 0, torch.qint8)

    return call(quantise, inputs()).dequantize()


@TENSOR_KINDS
def fake_quantised(call):
    x = inputs().float().requires_grad_()
    call(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127), x).sum().backward()
    return x


@TENSOR_KINDS
def dynamically_quantised_layer(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 4)).float(), {nn.Linear})
    return call(model, inputs().float())


@TENSOR_KINDS
def floats_of_eight_bits(call):
    def scaled(x):
        scale = x.abs().amax() / 448
        return (x / scale).to(torch.float8_e4m3fn), scale

    y, scale = call(scaled, inputs())
    return y.float(), scale


@TENSOR_KINDS
def buffer_of_eight_bits(call):
    class Stored(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.randn(4, 4).to(torch.float8_e4m3fn))
            self.register_buffer("scale", torch.ones(()))

        def forward(self, x):
            self.scale.mul_(0.5)
            return x @ (self.weight.to(x.dtype) * self.scale)

    model = Stored()
    return [call(model, inputs()) for _ in range(2)], model.scale


@TENSOR_KINDS
def masked_tensors(call):
    def masked(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.masked.masked_tensor(x, x > 0).sum(-1).to_tensor(0.0)

    return call(masked, inputs())


@TENSOR_KINDS
def masked_tensor_given(call):
    x = inputs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        masked = torch.masked.masked_tensor(x, x > 0)
        return call(lambda m: (m * 2).to_tensor(0.0), masked)


@TENSOR_KINDS
def complex_and_conjugate(call):
    z = torch.complex(inputs().float(), inputs().float()).requires_grad_()
    w = call(lambda z: (z.conj(), (z * 1j).imag, torch.view_as_real(z), z.abs()), z)
    (w[1].sum() + w[3].sum() + w[0].real.sum()).backward()
    return w, z


@TENSOR_KINDS
def conjugate_given(call):
    z = torch.complex(inputs().float(), inputs().float())
    return call(lambda z, n: (z * 2, n + 1), z.conj(), z.conj().imag)


@TENSOR_KINDS
def views_and_writes(call):
    x = inputs(4, 4)

    def write(x):
        rows, columns = x[::2], x.t()
        rows.add_(1)
        columns[0].mul_(2)
        x.view(-1)[3:5] = 0
        return rows, columns, x.diagonal()

    return call(write, x), x


@TENSOR_KINDS
def arguments_that_overlap(call):
    base = inputs(8)
    a, b = base[:5], base[3:]

    def write(a, b):
        a.add_(1)
        return b * 2

    return [call(write, a, b) for _ in range(2)], base


@TENSOR_KINDS
def views_of_a_graph_that_overlap(call):
    leaf = inputs(8).requires_grad_()
    base = leaf * 2
    a, b = base[:5], base[3:]
    call(lambda a, b: a.sum() * b.sum(), a, b).backward()
    return leaf


@TENSOR_KINDS
def expanded_argument(call):
    return call(lambda x: x * 2 + x.sum(), inputs(1, 4).expand(3, 4))


@TENSOR_KINDS
def strange_strides(call):
    x = torch.arange(24.0).as_strided((2, 3, 2), (1, 4, 2), 3)
    return call(lambda x: (x.contiguous(), x.permute(2, 0, 1), x + 1, x.reshape(-1)), x)


@TENSOR_KINDS
def channels_last_images(call):
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    model = model.to(memory_format=torch.channels_last)
    y = call(model, inputs(2, 3, 8, 8).to(memory_format=torch.channels_last))
    y.sum().backward()
    return y, gradients(model), model


@TENSOR_KINDS
def empty_tensors(call):
    x = torch.empty(0, 4, requires_grad=True)
    y = call(lambda x: (x * 2, x.sum(), x.t() @ x), x)
    (y[1] + y[2].sum()).backward()
    return y, x


@TENSOR_KINDS
def memory_that_nobody_wrote(call):
    return [one.shape for one in call(lambda x: (torch.empty(1000), x.new_empty(500), torch.empty_like(x)), inputs())]


@TENSOR_KINDS
def strided_memory_that_nobody_wrote(call):
    return call(lambda: torch.empty_strided((2, 3, 2), (1, 4, 100))).shape


@TENSOR_KINDS
def memory_partly_written(call):
    def made(x):
        y = torch.empty(2000)
        y[:8] = x.reshape(-1)
        return y

    return call(made, inputs())[:8]


@TENSOR_KINDS
def memory_sorted_that_nobody_wrote(call):
    return call(lambda: torch.empty(100, dtype=torch.long) * 0 + torch.empty(100, dtype=torch.long)).shape


@TENSOR_KINDS
def resized_memory(call):
    x = inputs()
    call(lambda x: x.resize_(4, 4), x)
    return x.shape


@TENSOR_KINDS
def gradient_by_function(call):
    return call(torch.func.grad(lambda x: x.sin().sum()), inputs())


@TENSOR_KINDS
def transforms_inside(call):
    def inside(x):
        per_row = torch.func.vmap(torch.func.grad(lambda row: row.sin().sum()))(x)
        jacobian = torch.func.jacrev(lambda row: row.square())(x[0])
        value, tangent = torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))
        return per_row, jacobian, value, tangent, torch.func.hessian(lambda row: row.sin().sum())(x[0])

    x = inputs().requires_grad_()
    outs = call(inside, x)
    sum(one.sum() for one in outs).backward()
    return outs, x


@TENSOR_KINDS
def call_inside_a_transform(call):
    model = nn.Linear(4, 2)
    return torch.func.vmap(lambda row: call(model, row))(inputs())


@TENSOR_KINDS
def per_sample_gradients(call):
    model = nn.Linear(4, 2)
    weights = {name: value.detach() for name, value in model.named_parameters()}

    def loss(weights, row):
        return torch.func.functional_call(model, weights, (row[None],)).square().sum()

    return call(torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0)), weights, inputs())


@TENSOR_KINDS
def stacked_models(call):
    models = [nn.Linear(4, 2) for _ in range(3)]
    weights, buffers = torch.func.stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")

    def run(weights, buffers, x):
        return torch.func.functional_call(base, (weights, buffers), (x,))

    return call(torch.func.vmap(run, in_dims=(0, 0, None)), weights, buffers, inputs())


@TENSOR_KINDS
def random_vmap(call):
    def noisy(row):
        return functional.dropout(row, 0.5)

    return call(torch.func.vmap(noisy, randomness="different"), inputs()), torch.rand(1)


@TENSOR_KINDS
def forward_mode(call):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(inputs(), torch.ones(2, 4))
        out = call(lambda x: x.sin() * 2, dual)
        return tuple(forward_ad.unpack_dual(out))


@TENSOR_KINDS
def trees_in_and_out(call):
    tree = {"a": [inputs(), (inputs(), None)], "b": {"c": 3}, 4: inputs()}

    def mapped(tree):
        return pytree.tree_map_only(torch.Tensor, lambda x: x * 2, tree)

    return call(mapped, tree), tree


@TENSOR_KINDS
def functional_call(call):
    model = nn.BatchNorm1d(4)
    state = {**dict(model.named_parameters()), **{n: b.clone() for n, b in model.named_buffers()}}
    out = call(lambda x: torch.func.functional_call(model, state, (x,)), inputs(3, 4))
    out.sum().backward()
    return out, state, model


@TENSOR_KINDS
def scripted_and_traced(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(nn.Linear(4, 2), inputs())
    y = call(traced, inputs())
    y.sum().backward()
    return y, [parameter.grad for parameter in traced.parameters()]


@TENSOR_KINDS
def graph_modules(call):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(x).relu()

    traced = torch.fx.symbolic_trace(Net())
    call(traced, inputs()).sum().backward()
    return gradients(traced)


@TENSOR_KINDS
def interpreter_of_graphs(call):
    traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 2), nn.ReLU()))
    return call(torch.fx.Interpreter(traced).run, inputs())


@TENSOR_KINDS
def attention_of_all_kinds(call):
    model = nn.MultiheadAttention(4, 2, batch_first=True)
    x = inputs(2, 3, 4)
    out, weights = call(lambda x: model(x, x, x, average_attn_weights=False), x)
    out.sum().backward()
    return out, weights, gradients(model)


@TENSOR_KINDS
def transformer_layer(call):
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    x = inputs(2, 3, 8)
    out = call(model, x)
    out.sum().backward()
    model.eval()
    with torch.no_grad():
        fast = call(model, x)
    return out, fast, gradients(model)


@TENSOR_KINDS
def distributions(call):
    def sampled(mean):
        normal = torch.distributions.Normal(mean, torch.ones_like(mean))
        drawn = normal.rsample()
        return drawn, normal.log_prob(drawn), torch.distributions.kl_divergence(normal, normal)

    x = inputs().float().requires_grad_()
    outs = call(sampled, x)
    sum(one.sum() for one in outs).backward()
    return outs, x, torch.rand(1)


@TENSOR_KINDS
def distribution_as_output(call):
    return call(lambda x: torch.distributions.Categorical(logits=x.float()), inputs()).probs


@TENSOR_KINDS
def bools_integers_and_strings(call):
    def mixed(x):
        return (x > 0).any(), int((x > 0).sum()), f"{x.shape}", x.argmax(), x.dtype, x.device, x.is_contiguous(), None

    return call(mixed, inputs())


@TENSOR_KINDS
def numbers_of_python(call):
    def read(x):
        return x.sum().item(), x.tolist(), float(x[0, 0]), complex(x[0, 1]), x.float().std().item()

    return call(read, inputs())


@TENSOR_KINDS
def sorting_and_ties(call):
    x = torch.tensor([1.0, 2.0, 1.0, 2.0]).requires_grad_()
    outs = call(lambda x: (x.sort(stable=True), x.topk(2), x.max(0), x.unique(), x.median(), x.mode()), x)
    outs[0].values.sum().backward()
    return outs, x


@TENSOR_KINDS
def dictionary_output_of_a_model(call):
    class Output(dict):
        def __getattr__(self, name):
            return self[name]

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x):
            return Output(logits=self.layer(x), hidden=x * 2, loss=None)

    out = call(Model(), inputs())
    out.logits.sum().backward()
    return out
