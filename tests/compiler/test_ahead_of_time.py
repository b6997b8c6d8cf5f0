"""Backends of two compilers: what each is given, how the joint graph is cut, and whose errors reach the caller."""

import pytest
import torch
from torch import nn

import plumbline
from plumbline.compiler.base.errors import UserError
from plumbline.compiler.base.events import RanEagerly, recording

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def fresh():
    plumbline.reset()


class Noted:
    """A compiler that runs the graph as it is and notes its operators."""

    def __init__(self):
        self.graphs = []

    def __call__(self, graph, example_inputs):
        assert len(example_inputs) == sum(node.op == "placeholder" for node in graph.graph.nodes)
        self.graphs.append([node.target for node in graph.graph.nodes if node.op == "call_function"])
        return graph


def loss(x, w):
    return (x @ w).sigmoid().sin().sum()


def operands():
    return torch.randn(3, 4, requires_grad=True), torch.randn(4, 5, requires_grad=True)


def gradients(function, x, w):
    return torch.autograd.grad(function(x, w), (x, w))


def test_forward_and_backward_go_to_their_compilers():
    forward, backward = Noted(), Noted()
    x, w = operands()
    function = plumbline.aot_function(loss, forward, backward)
    result = function(x, w)
    assert torch.equal(result, loss(x, w))
    assert (len(forward.graphs), len(backward.graphs)) == (1, 0)
    found = torch.autograd.grad(result, (x, w))
    assert all(map(torch.equal, found, gradients(loss, x, w)))
    assert len(backward.graphs) == 1
    assert aten.sigmoid.default in forward.graphs[0]
    assert aten.sigmoid_backward.default in backward.graphs[0]
    assert function.__name__ == "loss"


def test_one_compiler_gets_both_halves():
    both = Noted()
    gradients(plumbline.aot_function(loss, both), *operands())
    assert len(both.graphs) == 2


def test_without_gradients_there_is_one_graph():
    forward, backward = Noted(), Noted()
    plumbline.aot_function(loss, forward, backward)(torch.ones(3, 4), torch.ones(4, 5))
    assert (len(forward.graphs), len(backward.graphs)) == (1, 0)


def keep_nothing(joint, inputs, *, num_fwd_outputs):
    """Cut by torch's interface; the backward computes everything again from the inputs."""
    forward, backward = plumbline.min_cut_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)
    cuts.append(joint)
    return forward, backward


cuts: list[torch.fx.GraphModule] = []


@pytest.mark.parametrize("cut", [plumbline.default_partition, plumbline.min_cut_partition, keep_nothing])
def test_a_partition_function_cuts_the_joint_graph(cut):
    cuts.clear()
    x, w = operands()
    function = plumbline.aot_function(loss, Noted(), partition_fn=cut)
    assert all(map(torch.equal, gradients(function, x, w), gradients(loss, x, w)))
    for joint in cuts:
        names = [node.target for node in joint.graph.find_nodes(op="placeholder")]
        assert names == ["primals_1", "primals_2", "tangents_1"]


def test_partition_functions_of_torch_fit():
    from functorch.compile import default_partition, min_cut_rematerialization_partition

    x, w = operands()
    for cut in (default_partition, min_cut_rematerialization_partition):
        function = plumbline.aot_function(loss, Noted(), partition_fn=cut)
        assert all(map(torch.equal, gradients(function, x, w), gradients(loss, x, w)))


def test_the_least_is_kept_or_everything_that_backward_reads():
    class Backward(Noted):
        def __call__(self, graph, example_inputs):
            self.inputs = len(example_inputs)
            return super().__call__(graph, example_inputs)

    def chain(x):
        return x.sin().exp().cos().sum()

    kept, operators = {}, {}
    for cut in (plumbline.default_partition, plumbline.min_cut_partition):
        backward = Backward()
        x = torch.randn(4, requires_grad=True)
        plumbline.aot_function(chain, Noted(), backward, partition_fn=cut)(x).backward()
        kept[cut], operators[cut] = backward.inputs, len(backward.graphs[0])
    assert kept[plumbline.min_cut_partition] < kept[plumbline.default_partition]
    assert operators[plumbline.min_cut_partition] > operators[plumbline.default_partition]


def test_a_cut_that_does_not_fit_is_refused():
    def wrong(joint, inputs, *, num_fwd_outputs):
        forward, _ = plumbline.default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)
        return forward, forward

    with pytest.raises(UserError, match="forward that keeps"):
        plumbline.aot_function(loss, Noted(), partition_fn=wrong)(*operands())


def test_decompositions_of_torch_are_used():
    whole, apart = Noted(), Noted()
    rules = torch._decomp.get_decompositions([aten.silu])
    plumbline.aot_function(nn.functional.silu, whole)(torch.ones(2))
    plumbline.aot_function(nn.functional.silu, apart, decompositions=rules)(torch.ones(2))
    assert whole.graphs == [[aten.silu.default]]
    assert aten.silu.default not in apart.graphs[0]


@pytest.mark.parametrize("half", ["forward", "backward", "cut"])
def test_errors_of_the_callers_functions_reach_the_caller(half):
    def broken(*_, **__):
        raise ZeroDivisionError(half)

    forward = broken if half == "forward" else Noted()
    backward = broken if half == "backward" else Noted()
    function = plumbline.aot_function(loss, forward, backward, broken if half == "cut" else None)
    x, w = operands()
    with pytest.raises(ZeroDivisionError, match=half):
        function(x, w).backward()


def test_a_compiler_that_gives_nothing_to_call_is_refused():
    with pytest.raises(UserError, match="returned NoneType"):
        plumbline.aot_function(loss, lambda graph, inputs: None)(*operands())


def test_a_module_shares_everything_with_the_original():
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    compiled = plumbline.aot_module(model, Noted())
    x = torch.randn(4, 3)
    assert torch.equal(compiled(x), model(x))
    compiled(x).sum().backward()
    assert model[0].weight.grad is not None
    assert list(compiled.state_dict()) == list(model.state_dict())


def test_such_a_backend_has_a_name_once_it_is_registered():
    forward = Noted()
    plumbline.register_backend(plumbline.aot_autograd(fw_compiler=forward), name="noted_ahead_of_time")
    x, w = operands()
    assert torch.equal(plumbline.compile(loss, backend="noted_ahead_of_time")(x, w), loss(x, w))
    assert len(forward.graphs) == 1


def test_the_rung_before_code_generation_takes_operators_apart():
    def program(x, w):
        return nn.functional.glu((x @ w)[:, :4]).sum()

    x, w = operands()
    with recording() as events:
        found = gradients(plumbline.compile(program, backend="aot_eager_decomp_partition"), x, w)
    torch.testing.assert_close(found, gradients(program, x, w))
    assert not [event for event in events if isinstance(event, RanEagerly)]
    text = next(event.text for event in events if getattr(event, "name", "") == "forward")
    assert "torch.ops.aten.sigmoid" in text
    assert "torch.ops.aten.glu" not in text
