import pytest
import torch

from plumbline.compiler.base.errors import Unsupported
from plumbline.compiler.graph.checks import verify
from plumbline.compiler.graph.graph_interpreter import interpret, run_op_by_op
from plumbline.compiler.graph.tracer import trace

aten = torch.ops.aten


def targets(gm):
    return [node.target for node in gm.graph.nodes if node.op == "call_function"]


def test_aten_calls_are_recorded_below_autograd():
    gm = trace(lambda x, w: torch.nn.functional.linear(x, w).relu(), (torch.randn(3, 4), torch.randn(5, 4)))
    assert targets(gm)[:3] == [aten.t.default, aten.mm.default, aten.relu.default]
    verify(gm, costly=True)


def test_a_backward_pass_inside_is_recorded_too():
    def gradient(x):
        y = x.sin()
        y[0].mul_(2)
        return torch.autograd.grad(y.exp().sum(), x)

    x = torch.randn(4, requires_grad=True)
    gm = trace(gradient, (x,))
    assert aten.cos.default in targets(gm)
    torch.testing.assert_close(interpret(gm, (x.detach(),))[0], gradient(x)[0], rtol=0, atol=0)


def test_an_in_place_call_keeps_the_node_of_its_argument():
    def f(x):
        y = x + 1
        y.add_(2)
        return y

    gm = trace(f, (torch.zeros(2),))
    assert gm.graph.output_node().args[0][0].target is aten.add.Tensor
    assert torch.equal(interpret(gm, (torch.zeros(2),))[0], torch.full((2,), 3.0))


def test_a_size_changing_in_place_call_leaves_the_earlier_example_value():
    def f(x):
        y = x + 1
        y.t_()
        return y * 2

    gm = trace(f, (torch.zeros(2, 3),))
    assert [tuple(node.meta["val"].shape) for node in gm.graph.nodes if node.target is aten.add.Tensor] == [(2, 3)]
    assert interpret(gm, (torch.zeros(2, 3),))[0].shape == (3, 2)


def test_each_of_several_size_changes_keeps_its_own_example_value():
    def f(x):
        y = x + 1
        y.unsqueeze_(0)
        y.transpose_(0, -1)
        y.squeeze_(1)
        return y

    gm = trace(f, (torch.zeros(2, 3),))
    verify(gm, costly=True)
    shapes = [tuple(node.meta["val"].shape) for node in gm.graph.nodes if node.op == "call_function"]
    assert shapes == [(2, 3), (1, 2, 3), (3, 2, 1), (3, 2, 1)]


def test_no_random_number_is_drawn_while_tracing():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    gm = trace(lambda x: torch.nn.functional.dropout(x, 0.5) + torch.rand(3), (torch.ones(3),))
    assert torch.equal(before, torch.get_rng_state())
    expected = torch.nn.functional.dropout(torch.ones(3), 0.5) + torch.rand(3)
    torch.set_rng_state(before)
    assert torch.equal(interpret(gm, (torch.ones(3),))[0], expected)


def test_a_literal_tensor_is_fresh_at_every_run():
    gm = trace(lambda x: torch.tensor([1.0, 2.0]).add_(x), (torch.ones(2),))
    run = run_op_by_op(gm, ())
    assert torch.equal(run(torch.ones(2))[0], torch.tensor([2.0, 3.0]))
    assert torch.equal(run(torch.ones(2))[0], torch.tensor([2.0, 3.0]))


def test_inference_mode_is_recorded_in_small_operators():
    def f(x):
        with torch.inference_mode():
            return torch.nn.functional.linear(x, x)

    assert aten.mm.default in targets(trace(f, (torch.randn(3, 3),)))


def test_batch_norm_shows_that_it_writes_its_statistics():
    def f(x, mean, var):
        return torch.nn.functional.batch_norm(x, mean, var, training=True)

    gm = trace(f, (torch.randn(4, 2), torch.zeros(2), torch.ones(2)))
    assert aten._native_batch_norm_legit.default in targets(gm)


@pytest.mark.parametrize("value", [torch.eye(2).to_sparse(), torch.zeros(2, dtype=torch.complex64).conj()])
def test_odd_inputs_are_refused(value):
    with pytest.raises(Unsupported):
        trace(lambda x: x * 2, (value,))


def test_a_hidden_tensor_that_requires_grad_is_refused():
    hidden = torch.ones(2, requires_grad=True)
    with pytest.raises(Unsupported, match="without being an input"):
        trace(lambda x: x * hidden, (torch.ones(2),))
