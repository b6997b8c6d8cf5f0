import pytest
import torch
from torch import fx, nn

from plumbline.compiler.base.errors import InternalError
from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.graph.tracer import trace


def test_every_kind_of_node_runs_under_grad():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.scale = nn.Parameter(torch.tensor(2.0))

        def forward(self, x):
            return torch.sin(self.layer(x) * self.scale).sum(dim=0)

    model = Model()
    gm = fx.symbolic_trace(model)
    assert {node.op for node in gm.graph.nodes} == {
        "placeholder",
        "call_module",
        "get_attr",
        "call_function",
        "call_method",
        "output",
    }
    x = torch.ones(3, 2)
    (mine,) = interpret(gm, (x,))
    assert torch.equal(mine, model(x))
    mine.sum().backward()
    assert model.scale.grad is not None


def test_observers_see_and_may_replace_values():
    gm = trace(lambda x: x.sin() + 1, (torch.zeros(2),))
    seen = []
    (result,) = interpret(
        gm,
        (torch.zeros(2),),
        before=lambda node: seen.append(node.name),
        after=lambda node, value: value + 5 if node.name == "sin_default" else value,
    )
    assert seen == ["input_0", "sin_default", "add_tensor", "output"]
    assert torch.equal(result, torch.full((2,), 6.0))


def test_values_are_dropped_after_their_last_use():
    alive = []

    def watch(node, value):
        alive.append(sum(1 for ref in references if ref() is not None))
        return value

    import weakref

    references = []

    def keep(node, value):
        watch(node, value)
        if isinstance(value, torch.Tensor) and node.op == "call_function":
            references.append(weakref.ref(value))
        return value

    gm = trace(lambda x: x.sin().cos().tan().exp(), (torch.zeros(2),))
    interpret(gm, (torch.zeros(2),), after=keep)
    assert max(alive) <= 1


def test_a_missing_input_is_an_error():
    with pytest.raises(InternalError, match="input_1"):
        interpret(trace(lambda x, y: x + y, (torch.ones(1), torch.ones(1))), (torch.ones(1),))


def test_a_function_may_change_the_containers_that_it_is_given():
    """What a graph holds of them cannot be changed, and is not what the program passes."""

    def takes_apart(items, named, *, more):
        named["x"] = items.pop() + named.pop("x") + more.pop()
        return named["x"]

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    made = graph.call_function(takes_apart, ([x, x], {"x": x}), {"more": [x]})
    graph.output((made,))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    for _ in range(2):
        assert interpret(gm, [torch.ones(2)])[0].tolist() == [3, 3]
