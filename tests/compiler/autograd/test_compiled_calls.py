"""What a compiled call owes its caller beyond one call: new facts, hooks, second backwards, version errors."""

import gc
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import fx

from plumbline.compiler.autograd.compile import compile_with_autograd
from plumbline.compiler.base.errors import InternalError, Unsupported
from plumbline.compiler.base.events import FellBack, Partitioned, RanEagerly, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.base.origin import Origin
from plumbline.compiler.base.torch_facts import FakeTensor, FakeTensorMode
from plumbline.compiler.graph.graph_interpreter import run_op_by_op
from plumbline.compiler.graph.node_values import origin_of
from support.alike import differences, run

OPTIONS = Options(verify=True, strict=True)


def compiled(function, *inputs, compile_graph=run_op_by_op, **kwargs):
    graph = fx.Graph()
    nodes = [graph.placeholder(f"arg_{index}") for index in range(len(inputs))]
    graph.output(graph.call_function(function, tuple(nodes)))
    return compile_with_autograd(fx.GraphModule({}, graph), inputs, compile_graph, OPTIONS, **kwargs)


def first_result(function, x):
    call = compiled(lambda x: (function(x),), x)
    assert call.fallback_reason is None
    return lambda x: call(x)[0]


def ones(*shape, grad=True):
    return torch.ones(*shape, requires_grad=grad)


def test_a_graph_of_methods_and_operators():
    def f(x, w):
        y = x.view(2, -1).add_(1) @ w
        y[0].add_(1)
        return y.relu().sum(dim=-1), y.t()

    gm = fx.symbolic_trace(f)
    inputs = [torch.randn(2, 3) * 1, torch.randn(3, 2, requires_grad=True)]
    call = compile_with_autograd(gm, inputs, run_op_by_op, OPTIONS)
    assert call.fallback_reason is None

    def fresh():
        torch.manual_seed(0)
        return torch.randn(2, 3) * 1, torch.randn(3, 2, requires_grad=True)

    assert differences(run(call, fresh(), 0), run(f, fresh(), 0)) == []


def test_other_facts_are_compiled_anew():
    graphs = []

    def counting(gm, example_inputs):
        graphs.append(gm)
        return run_op_by_op(gm, example_inputs)

    call = compiled(lambda x: x.sin(), ones(3), compile_graph=counting)
    assert call(ones(3))[0].requires_grad
    assert len(graphs) == 1
    assert not call(ones(3, grad=False))[0].requires_grad
    assert call(ones(5))[0].shape == (5,)
    with torch.no_grad():
        assert not call(ones(3))[0].requires_grad
    assert len(graphs) == 4


def test_the_backward_is_compiled_when_it_first_runs():
    graphs = []

    def counting(gm, example_inputs):
        graphs.append(gm)
        return run_op_by_op(gm, example_inputs)

    call = compiled(lambda x: (x.sin(), x.cos()), ones(3), compile_graph=counting)
    a, b = call(ones(3))
    assert len(graphs) == 1
    (a + b).sum().backward()
    (a, b) = call(ones(3))
    (a + b).sum().backward()
    assert len(graphs) == 2


@pytest.mark.parametrize("overlap", ["same object", "view", "apart"])
def test_written_inputs_that_share_memory(overlap):
    def f(x, y):
        x.add_(1)
        return y * 2

    def inputs():
        base = torch.arange(8.0)
        if overlap == "same object":
            return base, base
        return (base[:4], base[2:6]) if overlap == "view" else (base[:4], base[4:])

    call = compiled(f, torch.zeros(4), torch.zeros(4))
    with recording() as events:
        mine = run(call, inputs())
    assert differences(mine, run(f, inputs())) == []
    assert any(isinstance(event, RanEagerly) for event in events) == (overlap == "view")


def test_a_gradient_may_flow_twice_when_the_graph_is_retained():
    x, y = ones(3), ones(3)
    out = compiled(lambda x: x.exp() * x, ones(3))(x)[0].sum()
    eager = (y.exp() * y).sum()
    for value in (out, eager):
        value.backward(retain_graph=True)
        value.backward()
    assert torch.equal(x.grad, y.grad)
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()


def test_a_gradient_of_the_gradient_is_refused_with_a_clear_word():
    x = ones(3)
    out = compiled(lambda x: x.exp(), ones(3))(x)[0].sum()
    (gradient,) = torch.autograd.grad(out, x, create_graph=True)
    assert torch.equal(gradient, torch.ones(3).exp())
    with pytest.raises(Unsupported, match="once_differentiable"):
        gradient.sum().backward()


def test_a_result_that_is_written_later_raises_as_in_eager():
    for function, kept in ((torch.exp, True), (torch.sin, False), (lambda x: x.exp() * 2, False)):
        for call in (function, first_result(function, ones(3))):
            out = call(ones(3))
            total = out.sum()
            out.detach().mul_(2)
            if kept:
                with pytest.raises(RuntimeError, match="modified by an inplace"):
                    total.backward()
            else:
                total.backward()


def test_an_input_that_is_written_later_raises_only_where_eager_does():
    for function, kept in ((torch.exp, False), (torch.sin, True), (lambda x: (x * 2).sin() + x, False)):
        for call in (function, first_result(function, ones(3) * 1)):
            x = ones(3) * 1
            out = call(x)
            x.detach().mul_(2)
            if kept:
                with pytest.raises(RuntimeError, match="modified by an inplace"):
                    out.sum().backward()
            else:
                out.sum().backward()


def test_results_can_be_written_with_history():
    x, y = ones(4), ones(4)
    mine, eager = compiled(lambda x: (x.exp() + 1).view(2, 2), ones(4))(x)[0], (y.exp() + 1).view(2, 2)
    for out in (mine, eager):
        out[0].mul_(3)
        out.sum().backward()
    assert torch.equal(x.grad, y.grad)
    assert torch.equal(mine, eager)


def test_aliases_stay_aliases_for_later_writes():
    call = compiled(lambda x: (lambda y: (y, y[0], x[1]))(x.exp()), ones(2, 2) * 1)
    x = ones(2, 2) * 1
    whole, row, of_input = call(x)
    row.mul_(0)
    assert whole[0].abs().sum() == 0
    of_input.fill_(7)
    assert x[1, 0] == 7
    x.sum().backward(retain_graph=True)


def test_hooks_and_retained_gradients_of_inputs_and_outputs():
    leaf = ones(3)
    middle = leaf * 2
    middle.retain_grad()
    seen = []
    middle.register_hook(lambda g: seen.append(g.clone()))
    out = compiled(lambda m: m * m, ones(3) * 2)(middle)[0]
    out.retain_grad()
    out.sum().backward()
    assert torch.equal(middle.grad, torch.full((3,), 4.0))
    assert torch.equal(out.grad, torch.ones(3))
    assert len(seen) == 1


def test_odd_layouts_of_incoming_gradients():
    weight = torch.randn(3, 3)
    for gradient in (torch.ones(()).expand(3, 3), torch.randn(3, 3).t(), torch.randn(3, 6)[:, ::2]):
        x, y = torch.eye(3, requires_grad=True), torch.eye(3, requires_grad=True)
        compiled(lambda x: (x @ weight).view(-1).view(3, 3), torch.eye(3, requires_grad=True))(x)[0].backward(gradient)
        (y @ weight).view(-1).view(3, 3).backward(gradient)
        torch.testing.assert_close(x.grad, y.grad, rtol=1e-6, atol=1e-6)


def test_autocast_is_part_of_the_facts_and_stays_out_of_the_graph():
    def f(x, w):
        y = x @ w
        return y, y @ w

    call = compiled(f, ones(2, 2), ones(2, 2))
    assert call(ones(2, 2), ones(2, 2))[0].dtype == torch.float32

    def inputs():
        return torch.rand(2, 2, generator=torch.Generator().manual_seed(1)).requires_grad_(), ones(2, 2)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        mine, eager = run(call, inputs(), 0), run(f, inputs(), 0)
        assert differences(mine, eager) == []
    assert call.fallback_reason is None
    assert mine["types"][0][0] == torch.bfloat16


def test_transforms_see_the_program_itself():
    def f(x):
        return (x.sin() * 2,)

    call = compiled(f, ones(3))
    x = torch.randn(4, 3)
    assert torch.equal(torch.func.vmap(lambda row: call(row)[0])(x), f(x)[0])
    assert torch.equal(torch.func.grad(lambda v: call(v)[0].sum())(x[0]), x[0].cos() * 2)
    mine, eager = (torch.func.jvp(g, (x[0],), (x[1],)) for g in (lambda v: call(v)[0], lambda v: f(v)[0]))
    assert torch.equal(mine[1], eager[1])
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x[0], x[1])
        assert torch.equal(torch.autograd.forward_ad.unpack_dual(call(dual)[0]).tangent, eager[1])


def test_fake_arguments_give_fake_results():
    call = compiled(lambda x: x.sin(), torch.ones(3))
    with FakeTensorMode():
        assert isinstance(call(torch.empty(3))[0], FakeTensor)


def test_a_failing_program_fails_as_itself_and_in_silence(capfd):
    call = compiled(lambda x: x @ x[:3], ones(4, 4))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        call(ones(4, 4))
    assert capfd.readouterr().err == ""


def test_random_draws_are_never_repeated_or_dropped():
    def f(x):
        torch.rand(2)
        return torch.nn.functional.dropout(x, 0.5) * torch.rand(8).exp()

    x = ones(8)
    assert differences(run(compiled(f, x), (ones(8),), 0), run(f, (ones(8),), 0)) == []


def test_less_is_kept_than_eager_keeps():
    def chain(x, w):
        y = x @ w
        for _ in range(5):
            y = (y * 2).sigmoid().tanh() + 1
        return (y.sum(),)

    with recording() as events:
        compiled(chain, torch.randn(8, 8, requires_grad=True), torch.randn(8, 8, requires_grad=True))
    (row,) = [event for event in events if isinstance(event, Partitioned)]
    assert row.saved_bytes == 8 * 8 * 4  # the product alone; eager keeps eleven such tensors
    assert row.recomputed > 10


def test_without_recomputation_every_value_is_kept():
    inputs = torch.randn(8, requires_grad=True)
    with recording() as events:
        compiled(lambda x: (x.sigmoid().tanh().sin(),), inputs, recompute=False)
    (row,) = [event for event in events if isinstance(event, Partitioned)]
    assert row.recomputed == 0


def test_our_own_errors_surface_under_strict():
    def broken(gm, example_inputs):
        raise InternalError("planted", hint="none")

    with pytest.raises(InternalError, match="planted"):
        compiled(lambda x: x.sin(), ones(3), compile_graph=broken)
    graph = fx.Graph()
    graph.output((graph.call_method("sin", (graph.placeholder("x"),)),))
    call = compile_with_autograd(fx.GraphModule({}, graph), (ones(3),), broken, Options())
    assert call.fallback_reason == "planted"
    assert torch.equal(call(ones(3))[0], ones(3).sin())


def test_a_backward_that_cannot_be_compiled_runs_op_by_op():
    made = []

    def only_forward(gm, example_inputs):
        made.append(gm)
        if len(made) > 1:
            raise RuntimeError("no backward here")
        return run_op_by_op(gm, example_inputs)

    graph = fx.Graph()
    graph.output((graph.call_method("exp", (graph.placeholder("x"),)),))
    call = compile_with_autograd(fx.GraphModule({}, graph), (ones(3),), only_forward, Options())
    x = ones(3)
    with recording() as events:
        call(x)[0].sum().backward()
    assert torch.equal(x.grad, torch.ones(3).exp())
    assert [event.why for event in events if isinstance(event, FellBack)] == ["RuntimeError: no backward here"]


def test_a_compiled_call_does_not_hold_its_example_inputs():
    x = torch.ones(3, requires_grad=True) * 1
    watch = weakref.ref(x)
    call = compiled(lambda x: (x.sin(), x[0]), x)
    assert call.fallback_reason is None
    del x
    gc.collect()
    assert watch() is None


def test_user_lines_reach_the_backward():
    graph = fx.Graph()
    x = graph.placeholder("x")
    first = graph.call_function(torch.sin, (x,))
    second = graph.call_function(torch.exp, (first,))
    graph.output((second,))
    first.meta["origin"], second.meta["origin"] = Origin("m.py", 1, "f"), Origin("m.py", 2, "f")
    graphs = []

    def keep(gm, example_inputs):
        graphs.append(gm)
        return run_op_by_op(gm, example_inputs)

    compile_with_autograd(fx.GraphModule({}, graph), (ones(3),), keep, OPTIONS)(ones(3))[0].sum().backward()
    places = [(str(n.target), origin_of(n).line) for n in graphs[1].graph.nodes if n.op == "call_function"]
    assert places == [("aten.mul.Tensor", 2), ("aten.cos.default", 1), ("aten.mul.Tensor", 1)]  # e * g, cos(x), chain


ACTIONS = {
    "sin": lambda t, s: t.sin(),
    "mix": lambda t, s: t * s,
    "matmul": lambda t, s: t @ s.t(),
    "write": lambda t, s: t.mul_(2),
    "write from": lambda t, s: t.add_(s.sum()),
    "write row": lambda t, s: (t[0].copy_(s[1]), t)[1],
    "turn": lambda t, s: t.t(),
    "rows": lambda t, s: t.view(-1).view(3, 3) if t.is_contiguous() else t.contiguous(),
    "detach": lambda t, s: t.detach(),
    "clone": lambda t, s: t.clone(),
    "drop": lambda t, s: torch.nn.functional.dropout(t, 0.3),
    "mask": lambda t, s: torch.where(s > 0, t, s),
    "flip": lambda t, s: t.flip(0),
    "softmax": lambda t, s: t.softmax(0),
}
STEP = st.tuples(st.sampled_from(sorted(ACTIONS)), st.integers(0, 6), st.integers(0, 6), st.booleans())


@settings(max_examples=120, deadline=None)
@given(
    st.lists(STEP, min_size=1, max_size=8),
    st.lists(st.integers(0, 8), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from([None, 0, 1]),
)
def test_random_programs_are_eager(steps, given_out, recompute, chosen):
    def program(x, y, buffer):
        values = [x, y, buffer]
        for name, first, second, grad in steps:
            with torch.set_grad_enabled(grad):
                values.append(ACTIONS[name](values[first % len(values)], values[second % len(values)]))
        return tuple(values[index % len(values)] for index in [*given_out, len(values) - 1])

    def inputs():
        generator = torch.Generator().manual_seed(2)
        x, y, buffer = (torch.randn(3, 3, generator=generator, dtype=torch.float64) for _ in range(3))
        return x.requires_grad_(), y.requires_grad_() * 1.5, buffer

    mine = run(compiled(program, *inputs(), recompute=recompute), inputs(), 0, chosen)
    eager = run(program, inputs(), 0, chosen)
    assert differences(mine, eager, rounding=1e-10) == []
