import pytest
import torch

from plumbline.compiler.graph.checks import verify
from plumbline.compiler.graph.decompositions import default_decompositions
from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.graph.tracer import trace

F = torch.nn.functional
aten = torch.ops.aten
X = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
PROGRAMS = {
    "silu": (lambda x: F.silu(x), aten.silu.default),
    "gelu": (lambda x: F.gelu(x), aten.gelu.default),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), aten.gelu.default),
    "softmax": (lambda x: x.softmax(-1), aten._softmax.default),
    "safe_softmax": (
        lambda x: aten._safe_softmax(x.masked_fill(x > x[2, 3], -torch.inf), -1),
        aten._safe_softmax.default,
    ),
    "log_softmax": (lambda x: x.log_softmax(0), aten._log_softmax.default),
    "mean": (lambda x: x.mean(), aten.mean.default),
    "mean_dim": (lambda x: x.mean(1, keepdim=True), aten.mean.dim),
    "var": (lambda x: x.var(0), aten.var.correction),
    "var_mean": (lambda x: torch.var_mean(x, 1, correction=0), aten.var_mean.correction),
    "layer_norm": (lambda x: F.layer_norm(x, (6,), x[0], x[1]), aten.native_layer_norm.default),
    "softplus": (lambda x: F.softplus(x), aten.softplus.default),
    "mse": (lambda x: F.mse_loss(x, x * 2), aten.mse_loss.default),
    "tanh": (lambda x: x.tanh(), None),
    "sigmoid": (lambda x: x.sigmoid(), None),
    "relu": (lambda x: x.relu(), None),
}


def with_gradients(program):
    def run(x):
        results = program(x)
        results = results if isinstance(results, tuple) else (results,)
        return (*results, *torch.autograd.grad([(r * r.detach().cos()).sum() for r in results], x))

    return run


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_decomposition_means_the_operator(name):
    program, big = PROGRAMS[name]
    x = X.double().requires_grad_()
    gm = trace(with_gradients(program), (x,), decompositions=default_decompositions())
    verify(gm)
    called = {node.target for node in gm.graph.nodes}
    assert big not in called
    assert not any("_backward" in str(target) for target in called)
    for mine, eager in zip(interpret(gm, (x.detach(),)), with_gradients(program)(x), strict=True):
        torch.testing.assert_close(mine, eager, rtol=1e-12, atol=1e-12)
        assert mine.stride() == eager.stride()


@pytest.mark.parametrize("name", PROGRAMS)
def test_half_precision_rounds_once(name):
    program, _ = PROGRAMS[name]
    x = X.bfloat16()
    gm = trace(program, (x,), decompositions=default_decompositions())
    exact = program(X.bfloat16().double())
    mine = interpret(gm, (x,))
    for value, reference in zip(mine, exact if isinstance(exact, tuple) else (exact,), strict=True):
        assert value.dtype == torch.bfloat16
        torch.testing.assert_close(value.double(), reference, rtol=2**-6, atol=2**-6)


def test_every_listed_rule_exists():
    table = default_decompositions()
    assert len(table) > 60
    assert all(callable(rule) for rule in table.values())
