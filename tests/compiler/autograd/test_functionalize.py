import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plumbline.compiler.autograd.functional_twins import cloning_twin, twin_of
from plumbline.compiler.autograd.functionalize import functionalize
from plumbline.compiler.base.errors import Unsupported
from plumbline.compiler.base.torch_facts import FakeTensorMode
from plumbline.compiler.graph.checks import verify
from plumbline.compiler.graph.facts import is_random
from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.graph.tracer import trace

aten = torch.ops.aten


def check(function, *inputs):
    """The functional graph gives the results, the new contents of written inputs and the generator's state of eager."""
    mode = FakeTensorMode()
    recorded = trace(function, inputs, mode=mode)
    constants = [getattr(recorded, node.target) for node in recorded.graph.nodes if node.op == "get_attr"]
    gm, written = functionalize(recorded, mode)
    verify(gm, functional=True, costly=True)
    torch.manual_seed(5)
    mine = interpret(gm, (*inputs, *constants))
    mine_state = torch.get_rng_state()
    copies = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t) for t in inputs]
    torch.manual_seed(5)
    eager = function(*copies)
    eager = eager if isinstance(eager, tuple) else (eager,)
    assert torch.equal(mine_state, torch.get_rng_state())
    for index, copy in enumerate(copies):
        assert index in written or torch.equal(copy, inputs[index])
    for value, expected in zip(mine, (*eager, *(copies[index] for index in written)), strict=True):
        assert value.dtype == expected.dtype
        assert torch.equal(value, expected)
        assert value.numel() == 0 or value.stride() == expected.stride()
    return gm


X = torch.arange(16.0).view(4, 4)
PROGRAMS = {
    "row": lambda x: x[1].add_(1),
    "slice": lambda x: (x[:, 1:3].mul_(2), x)[1],
    "transposed": lambda x: x.t().add_(torch.arange(4.0)),
    "flat": lambda x: (x.view(-1)[::3].zero_(), x.clone())[1],
    "diagonal": lambda x: (x.diagonal().fill_(7), x + 0)[1],
    "unsqueezed": lambda x: x.unsqueeze(0).squeeze().unsqueeze(-1).add_(2),
    "permuted": lambda x: x.view(2, 2, 4).permute(2, 0, 1).mul_(3),
    "split": lambda x: (x.split(3)[1].neg_(), x.split([1, 3], 1)[0].exp_(), x * 1)[2],
    "unbind": lambda x: (x.unbind(1)[2].add_(10), x * 1)[1],
    "bits": lambda x: (x.view(torch.int32).bitwise_and_(-256), x * 1)[1],
    "complex": lambda x: (torch.view_as_complex(x.view(4, 2, 2)).mul_(1j), x * 1)[1],
    "real": lambda x: torch.view_as_real(torch.complex(x, x)).mul_(2),
    "strided": lambda x: ((x + 0).as_strided((3,), (2,), 1).mul_(5), x * 1)[1],
    "strided result": lambda x: (lambda y: (y.as_strided((3,), (2,), 1).mul_(5), y)[1])(x + 0),
    "geometry": lambda x: (lambda y: (y.t_(), y[0].add_(1), y)[2])(x + 0),
    "geometry of a view": lambda x: (lambda y: (y.unsqueeze_(0), y.zero_(), x * 1)[2])(x[0]),
    "late reader": lambda x: (lambda v: (x.add_(1), v * 2)[1])(x[2:]),
    "two views": lambda x: (lambda a, b: (a.add_(1), b.mul_(2), a * 1)[2])(x[0], x.view(-1)),
    "masked": lambda x: x.masked_fill_(x > 5, -1.0),
    "index put": lambda x: (x.__setitem__(torch.tensor([0, 2]), torch.ones(4)), x * 1)[1],
    "out": lambda x: torch.add(x, 1, out=torch.empty(4, 4)),
    "two outs": lambda x: torch.max(x, 0, out=(torch.empty(4), torch.empty(4, dtype=torch.int64))),
    "cast": lambda x: x.to(torch.int32).add_(3).copy_(x * 1.5),
    "smaller source": lambda x: x.copy_(torch.tensor(3.0)),
    "uniform": lambda x: x.uniform_() + torch.rand(4, 4),
    "uniform transposed": lambda x: x.t().uniform_(),
    "bernoulli transposed": lambda x: x.t().contiguous().t().bernoulli_(0.5),
    "normal column": lambda x: x[:, 1].normal_(),
    "foreach": lambda x: (lambda a, b: (torch._foreach_mul_([a, b], 2.0), a, b)[1:])(x + 0, x + 1),
    "batch norm": lambda x: (lambda m, v: (torch.nn.functional.batch_norm(x, m, v, training=True), m, v))(
        torch.zeros(4), torch.ones(4)
    ),
    "rrelu": lambda x: torch.nn.functional.rrelu(x - 8, training=True),
    "own flip": lambda x: x.copy_(x.flip(0)),
    "shift rows": lambda x: (x.__setitem__(slice(1, None), x[:-1].clone()), x)[1],
    "far rows": lambda x: (x[:2].copy_(x[2:]), x * 1)[1],
    "self": lambda x: x.add_(x),
    "empty": lambda x: (x[4:].add_(1), x * 1)[1],
    "constant": lambda x: torch.tensor([1.0, 2.0, 3.0, 4.0]).mul_(x[0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_follow_memory(name):
    check(PROGRAMS[name], X.clone())


@pytest.mark.parametrize("layout", ["transposed", "every second", "column"])
def test_strides_of_written_inputs_are_kept(layout):
    x = {"transposed": X.t(), "every second": torch.arange(32.0).view(4, 8)[:, ::2], "column": X[:, 1]}[layout]
    check(lambda x: (x.add_(1), x * 2)[1], x)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x[1:].copy_(x[:-1]),
        lambda x: x[0].expand(4, 4).add_(1),
        lambda x: x.t_(),
        lambda x: x.resize_(2),
        lambda x: (x.add_(1), x.as_strided((2,), (2,)))[1],
    ],
    ids=["overlap", "expanded", "input geometry", "resize", "strided input"],
)
def test_what_values_cannot_follow_is_refused(program):
    mode = FakeTensorMode()
    with pytest.raises(Unsupported):
        functionalize(trace(program, (X.clone(),), mode=mode), mode)


def test_twins_write_nothing():
    for operator in (aten.add_.Tensor, aten.max.dim_max, aten.rrelu_with_noise.default, aten.rand.out):
        schema = twin_of(operator).operator._schema
        assert not any(argument.is_write for argument in schema.arguments)


def test_a_twin_that_is_defined_here_draws_as_its_original():
    assert is_random(cloning_twin(aten.bernoulli_.float).operator)
    assert not is_random(cloning_twin(aten.add_.Tensor).operator)


VIEWS = {
    "row": lambda t: t[0] if len(t) else t,
    "tail": lambda t: t[1:],
    "step": lambda t: t[::2],
    "turn": lambda t: t.t() if t.dim() == 2 else t,
    "flat": lambda t: t.reshape(-1),
    "lift": lambda t: t.unsqueeze(0),
    "drop": lambda t: t.squeeze(),
    "half": lambda t: t.chunk(2)[-1],
    "bits": lambda t: t.view(torch.int32).view(torch.float32),
    "alias": lambda t: t.detach(),
    "last": lambda t: t.movedim(0, -1),
    "copy": lambda t: t * 1,
}
WRITES = {
    "add": lambda t: t.add_(1),
    "mul": lambda t: t.mul_(-2),
    "fill": lambda t: t.fill_(3),
    "copy": lambda t: t.copy_(t.flip(0) if t.dim() else t),
    "mask": lambda t: t.masked_fill_(t > 2, 0.5),
    "random": lambda t: t.uniform_(),
    "iadd": lambda t: t.add_(t.sum()),
}
ACTION = st.tuples(st.sampled_from(["view", "write"]), st.integers(0, 5), st.integers(0, 20))


@settings(max_examples=150, deadline=None)
@given(st.lists(ACTION, min_size=1, max_size=9))
@example([("view", 0, 17), ("view", 1, 1), ("view", 2, 0)])  # a row of nothing
def test_random_programs_of_views_and_writes(actions):
    def program(x):
        tensors = [x]
        for kind, which, rule in actions:
            target = tensors[which % len(tensors)]
            if kind == "view":
                if target.dim() == 0 and rule % len(VIEWS) not in (5, 6, 9, 11):
                    continue
                tensors.append(list(VIEWS.values())[rule % len(VIEWS)](target))
            else:
                list(WRITES.values())[rule % len(WRITES)](target)
        return tuple(t * 1 for t in tensors)

    check(program, torch.linspace(-3, 3, 16).view(4, 4))
