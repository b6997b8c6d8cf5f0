"""nn.Module as users write it: containers, buffers, hooks, counters, flags, changes of structure inside forward."""

import copy

import torch
import torch.nn.functional as F  # noqa: N812 - as everyone writes it
from torch import nn

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)


def seeded(make):
    torch.manual_seed(1)
    return make()


def call(module):
    """Return a maker of (module, input); the module is made once and copied for every run."""
    return lambda: (copy.deepcopy(module), A.clone())


class Block(nn.Module):
    def __init__(self, width=3, scale=2.0):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.scale = scale
        self.register_buffer("steps", torch.zeros(1))
        self.register_buffer("nothing", None)
        self.calls = 0

    def forward(self, x, residual=True):
        y = F.gelu(self.linear(self.norm(x))) * self.scale
        return x + y if residual else y


class Counting(Block):
    def forward(self, x, residual=True):
        self.calls += 1
        self.steps += 1
        self.last = x.sum()
        return super().forward(x, residual) * self.steps


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block(scale=float(i)) for i in range(3)])
        self.heads = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Linear(3, 4)})
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(3) * i) for i in range(2)])
        self.table = nn.ParameterDict({"w": nn.Parameter(torch.ones(3))})

    def forward(self, x, names=("a",)):
        for i, layer in enumerate(self.layers):
            x = layer(x) * self.weights[i % 2]
        x = x + self.layers[0](x) + self.layers[-1](x) * self.table["w"]
        out = {name: head(x) for name, head in self.heads.items() if name in names}
        return out, len(self.layers), "a" in self.heads


class Switching(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.bn = nn.Dropout(0.5), nn.BatchNorm1d(3)

    def forward(self, x):
        return self.drop(self.bn(x)) if self.training else self.bn(x)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.out = nn.Linear(3, 5, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x):
        return self.out(self.embed(x))


class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.options = {"act": "relu", "k": 2}
        self.acts = {"relu": F.relu, "tanh": torch.tanh}

    def __getattr__(self, name):
        if name == "magic":
            return 7.0
        return super().__getattr__(name)

    def __len__(self):
        return 3

    def forward(self, x):
        return self.acts[self.options["act"]](self.linear(x)) * self.magic + len(self)


class Custom(nn.Sequential):
    def forward(self, x):
        for module in self:
            x = module(x)
        return x * len(self)


class Inner(nn.Module):
    def forward(self, x, *, state=None):
        if state is not None:
            state.setdefault("seen", []).append(x)
        return x * 2


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def helper(self, x):
        return self.inner(x, state=self.__dict__.setdefault("cache", {}))

    def forward(self, x):
        return self.helper(self.helper(x))


class CallOverride(nn.Module):
    def __call__(self, x):
        return super().__call__(x) + 1

    def forward(self, x):
        return x * 3


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 3)
        self.state = None

    def forward(self, x):
        self.state = self.cell(x, self.state)
        return self.state


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).reshape(b, t, c)


def pre_hook(module, args):
    return (args[0] * 2,)


def post_hook(module, args, output):
    module.hooked = True
    return output + 1


def keyword_hook(module, args, kwargs, output):
    return output * (3 if kwargs.get("residual", True) else 5)


def with_hooks():
    block = Block()
    block.register_forward_pre_hook(pre_hook)
    block.register_forward_hook(post_hook)
    block.register_forward_hook(keyword_hook, with_kwargs=True)
    return nn.Sequential(block, nn.ReLU())


@program(make=call(seeded(Block)))
def module_argument(m, x):
    return m(x)


@program(make=call(seeded(Block)), backward=True)
def module_argument_with_gradients(m, x):
    return m(x).sum()


@program(make=call(seeded(Block)))
def keyword_to_a_module(m, x):
    return m(x, residual=False) + m.forward(x)


@program(make=call(seeded(Counting)), stable=True)
def buffers_and_counters_are_updated(m, x):
    return m(m(x))


@program(make=call(seeded(Listed)))
def module_containers(m, x):
    return m(x), m(x, names=("a", "b"))


@program(make=call(seeded(Switching)), changed=lambda: (seeded(Switching).eval(), A.clone()))
def training_flag_chooses(m, x):
    return m(x)


@program(make=lambda: (seeded(Tied), torch.tensor([1, 2, 4])), backward=True)
def tied_weights(m, x):
    return m(x)


@program(make=call(seeded(Lookup)))
def module_with_getattr_and_len(m, x):
    return m(x)


@program(make=call(seeded(lambda: Custom(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2)))))
def sequential_subclass(m, x):
    return m(x), m[0](x), m[:2](x), len(m)


@program(make=call(seeded(Outer)), stable=True)
def keyword_state_through_modules(m, x):
    return m(x)


@program(make=call(CallOverride()))
def module_with_its_own_call(m, x):
    return m(x)


@program(make=call(seeded(Recurrent)), then=((call(seeded(Recurrent)), False),))
def state_kept_between_calls(m, x):
    m(x)
    return m(x)


@program(make=lambda: (seeded(Attention), torch.linspace(0, 1, 24).reshape(2, 3, 4)), backward=True)
def attention(m, x):
    return m(x)


@program(make=call(seeded(with_hooks)), stable=True)
def forward_hooks(m, x):
    return m(x)


@program(make=call(seeded(lambda: nn.LSTM(3, 4))))
def lstm(m, x):
    return m(x)


@program(make=call(seeded(lambda: nn.TransformerEncoderLayer(3, 1, 8, batch_first=True))))
def transformer_layer(m, x):
    return m(x[None])


@program(make=call(seeded(lambda: nn.MultiheadAttention(3, 1))))
def multihead_attention(m, x):
    return m(x, x, x, need_weights=True)


@program(
    make=lambda: (
        seeded(lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten())),
        torch.linspace(0, 1, 25).reshape(1, 1, 5, 5),
    )
)
def convolution_with_batch_norm(m, x):
    return m(x)


@program(make=call(seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)))))
def dropout_module(m, x):
    return m(x)


@program(make=call(seeded(Listed)))
def walking_over_modules_and_parameters(m, x):
    names = [name for name, _ in m.named_parameters()]
    total = sum(p.sum() for p in m.parameters())
    kinds = [type(child).__name__ for child in m.children()]
    return x * total, names, kinds, len(list(m.modules())), [n for n, _ in m.named_buffers()]


@program(make=call(seeded(Block)))
def module_attributes(m, x):
    return (
        x * m.scale,
        m.nothing is None,
        hasattr(m, "linear"),
        m.linear.in_features,
        isinstance(m, nn.Module),
        m.training,
    )


@program(make=call(seeded(Block)), stable=True)
def plain_attribute_of_a_module_is_set(m, x):
    m.scale = 3.0
    m.extra = [x]
    y = m(x)
    del m.extra
    return y


@program(make=call(seeded(Block)), stable=True)
def buffer_is_replaced(m, x):
    m.steps = m.steps + x.sum()
    return x * m.steps


@program(make=call(seeded(Block)), graphs=1, stable=True)
def parameter_is_written_without_gradients(m, x):
    with torch.no_grad():
        m.linear.weight.mul_(0.5)
        m.linear.bias.copy_(x[0])
    return m(x)


@program(make=call(seeded(Block)), stable=True)
def flags_are_set_inside(m, x):
    m.eval()
    y = m(x)
    m.train()
    return y, m.training


@program(make=call(seeded(Block)), stable=True)
def requires_grad_is_set_inside(m, x):
    m.linear.weight.requires_grad_(False)
    return m(x)


@program(A, graphs=1)
def module_made_inside(a):
    return nn.ReLU()(a) + nn.Softmax(dim=-1)(a)


@program(make=call(seeded(lambda: nn.Linear(3, 3))))
def functional_use_of_parameters(m, x):
    return F.linear(x, m.weight, m.bias) + m.weight.T.sum() + dict(m.named_parameters())["bias"]


@program(make=call(seeded(lambda: nn.Linear(3, 3))))
def functional_call(m, x):
    weights = {"weight": m.weight * 2, "bias": m.bias}
    return torch.func.functional_call(m, weights, (x,))


@program(make=lambda: (seeded(lambda: [nn.Linear(3, 3), nn.ReLU(), torch.tanh]), A.clone()))
def list_of_modules_and_functions(fs, x):
    for f in fs:
        x = f(x)
    return x


@program(make=call(seeded(Block)))
def bound_forward_of_a_module(m, x):
    f = m.forward
    return f(x) + m.linear.forward(x)


@program(make=call(seeded(Block)))
def apply_like_recursion(m, x):
    def count(module):
        return 1 + sum(count(child) for child in module.children())

    return x * count(m)


@program(
    make=call(seeded(lambda: nn.Sequential(nn.Identity(), nn.Linear(3, 3)))),
    changed=lambda: (seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.Identity())), A.clone()),
)
def structure_is_part_of_the_specialisation(m, x):
    return m(x)


@program(make=lambda: (seeded(lambda: nn.EmbeddingBag(5, 3)), torch.tensor([[1, 2], [0, 4]])))
def embedding_bag(m, x):
    return m(x)


@program(
    make=lambda: (seeded(lambda: nn.CrossEntropyLoss()), A.clone().requires_grad_(), torch.tensor([0, 2])),
    backward=True,
)
def loss_module(m, x, y):
    return m(x, y)


@program(make=call(seeded(lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)))))
def weight_norm(m, x):
    return m(x)


@program(make=call(seeded(lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)))), backward=True)
def spectral_norm(m, x):
    return m(x)


@program(make=call(seeded(lambda: nn.RNN(3, 4, num_layers=2))))
def stacked_rnn(m, x):
    return m(x)


@program(make=call(seeded(lambda: nn.GRU(3, 4, bidirectional=True))))
def bidirectional_gru(m, x):
    return m(x)


@program(make=call(seeded(Block)), graphs=2, breaks=1)
def print_inside_a_hooked_module(m, x):
    y = m.linear(x)
    print(y.shape)
    return m.norm(y)


@program(make=lambda: (seeded(lambda: nn.ModuleList([Block(), Block()])), A.clone()), graphs=3, breaks=2)
def print_between_the_layers(ms, x):
    for m in ms:
        x = m(x)
        print("layer")
    return x * 2


@corpus.parametrize()
def test_program(program):
    check(program)
