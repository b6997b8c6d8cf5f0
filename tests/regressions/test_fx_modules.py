"""An fx.GraphModule was not captured: its class has a `__call__` of its own, around that of all modules."""

import operator

import pytest
import torch
from torch import fx

import plumbline

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_traced_modules(backend):
    module = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()))
    x = torch.randn(2, 3)
    torch.testing.assert_close(plumbline.compile(module, backend=backend, fullgraph=True)(x), module(x))
    around = plumbline.compile(lambda x: module(x) * 2, backend=backend, fullgraph=True)
    torch.testing.assert_close(around(x), module(x) * 2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_graph_that_changes(backend):
    module = fx.symbolic_trace(lambda x: x + 1)
    runs = [plumbline.compile(body, backend=backend) for body in (module, lambda x: module(x) * 1)]
    x = torch.ones(2)
    for number in (1, 5, 7):
        for node in module.graph.nodes:
            if node.op == "call_function":
                node.target, node.args = operator.mul, (node.args[0], number)
        module.recompile()
        for run in runs:
            assert torch.equal(run(x), x * number)


@pytest.mark.parametrize("backend", BACKENDS)
def test_exported_modules(backend):
    module = torch.export.export(torch.nn.Linear(3, 3), (torch.ones(2, 3),)).module()
    x = torch.randn(2, 3)
    torch.testing.assert_close(plumbline.compile(module, backend=backend)(x), module(x))
