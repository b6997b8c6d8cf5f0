import pytest
import torch

from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.stored.graph_data import graph_of_plain, plain_graph
from plumbline.compiler.stored.plain_data import NotPlain, plain_bytes, plain_of_bytes


def program(x, y):
    parts = torch.split(x, 2)
    return torch.cat([parts[1], parts[0]]).sum(0, keepdim=True) + y.to(torch.float64), x.t()


def test_a_graph_comes_back_and_gives_the_same():
    inputs = torch.randn(4, 3), torch.randn(3)
    graph = trace(program, inputs)
    again = graph_of_plain(plain_of_bytes(plain_bytes(plain_graph(graph))))
    assert plain_graph(again) == plain_graph(graph)
    for mine, expected in zip(interpret(again, inputs), program(*inputs), strict=True):
        assert torch.equal(mine, expected)


def test_a_graph_that_holds_a_tensor_is_refused():
    held = torch.ones(3)
    with pytest.raises(NotPlain, match="holds"):
        plain_graph(trace(lambda x: x + held, (torch.randn(3),)))


def test_a_method_that_is_not_torchs_is_refused(monkeypatch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_method("relu", (x,)),))
    module = torch.fx.GraphModule({}, graph)
    plain_graph(module)
    monkeypatch.setattr(torch.Tensor, "relu", lambda x: x)
    with pytest.raises(NotPlain, match="the method relu"):
        plain_graph(module)
