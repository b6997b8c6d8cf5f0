import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import fx

from plumbline.compiler.autograd.costs import is_keepable, is_recomputable, kept_bytes
from plumbline.compiler.autograd.joint import trace_call
from plumbline.compiler.autograd.joint_program import JointProgram
from plumbline.compiler.autograd.partition import partition
from plumbline.compiler.base.events import Partitioned, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.checks import verify
from plumbline.compiler.graph.facts import is_random
from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.graph.passes import SIMPLIFY, run_passes
from plumbline.compiler.graph.tracer import trace

aten = torch.ops.aten


def joint_of(function, *inputs):
    graph = fx.Graph()
    nodes = [graph.placeholder(f"arg_{index}") for index in range(len(inputs))]
    graph.output(graph.call_function(function, tuple(nodes)))
    return trace_call(JointProgram(fx.GraphModule({}, graph), JointProgram.metadata(inputs), True)).joint


def run_cut(joint, cut, inputs, tangents):
    results = interpret(cut.forward, inputs)
    places = {"input": inputs, "returned": results[: joint.returned], "extra": results[joint.returned :]}
    kept = [places[kind][index] for kind, index in cut.kept]
    return [*results[: joint.returned], *interpret(cut.backward, [*kept, *tangents])]


def check_cut(function, *inputs, recompute=True, budget=1.0):
    joint = joint_of(function, *inputs)
    cut = partition(joint, recompute=recompute, budget=budget)
    verify(cut.forward, functional=True)
    verify(cut.backward, functional=True)
    plain = [tensor.detach() for tensor in inputs]
    tangents = [torch.full_like(interpret(joint.graph, [*plain, *_tangents(joint)])[i], 0.5) for i in joint.tangents]
    torch.manual_seed(0)
    expected = interpret(joint.graph, [*plain, *tangents])
    torch.manual_seed(0)
    for mine, whole in zip(run_cut(joint, cut, plain, tangents), expected, strict=True):
        assert (mine is None and whole is None) or torch.equal(mine, whole)
    return joint, cut


def _tangents(joint):
    given = [node for node in joint.graph.graph.nodes if node.op == "placeholder"][joint.inputs :]
    return [torch.zeros(tuple(node.meta["val"].shape)) for node in given]


def calls(gm):
    return [node.target for node in gm.graph.nodes if node.op == "call_function"]


def leaf(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(3)).requires_grad_()


def test_a_cheap_chain_is_computed_again_from_what_is_kept():
    _, cut = check_cut(lambda x, w: (x @ w).sigmoid().tanh().sum(), leaf(4, 4), leaf(4, 4))
    assert [kind for kind, _ in cut.kept].count("extra") == 1
    assert aten.tanh.default in calls(cut.backward)
    assert aten.mm.default in calls(cut.forward)
    assert calls(cut.backward).count(aten.mm.default) == 2  # the two gradients of the product, not the product


def test_nothing_that_costs_runs_twice_when_asked():
    joint = joint_of(lambda x, w: (x @ w).sigmoid().tanh().sum(), leaf(4, 4), leaf(4, 4))
    cut = partition(joint, recompute=False)
    assert not {aten.sigmoid.default, aten.tanh.default} & set(calls(cut.backward))


def test_random_draws_stay_in_the_forward_in_their_order():
    def f(x):
        torch.rand(1)
        return torch.nn.functional.dropout(x.exp(), 0.5) * torch.rand(4)

    _, cut = check_cut(f, leaf(4))
    drawn = [target for target in calls(cut.forward) if torch.Tag.nondeterministic_seeded in target.tags]
    assert drawn == [aten.rand.default, aten.bernoulli.p, aten.rand.default]
    assert not any(torch.Tag.nondeterministic_seeded in target.tags for target in calls(cut.backward))


def test_views_are_taken_again_and_never_kept():
    _, cut = check_cut(lambda x, w: x.t() @ w.t(), leaf(3, 4), leaf(5, 3))
    assert all(kind == "input" for kind, _ in cut.kept)


def test_what_the_caller_sees_is_kept_only_if_eager_keeps_it():
    _, cut = check_cut(lambda x: x.exp().exp(), leaf(4))
    assert sorted(cut.kept) == [("extra", 0), ("returned", 0)]  # both results, as in eager; nothing runs again
    _, cut = check_cut(lambda x: x.exp(), leaf(4))
    assert cut.kept == (("returned", 0),)
    _, cut = check_cut(lambda x: x.sin(), leaf(4))
    assert cut.kept == (("input", 0),)


def test_the_old_content_of_a_written_input_is_copied():
    def f(x):
        old = x.clone()
        x.mul_(2)
        return old.sin()

    joint, cut = check_cut(f, leaf(4) * 1)
    assert joint.written == {0}
    assert all(kind != "input" for kind, _ in cut.kept)


def test_a_copy_of_a_small_input_that_eager_does_not_keep_lets_a_large_value_be_computed_again():
    with recording() as events:
        joint, cut = check_cut(lambda x, b: (x * x + b).sin().exp().sum(), leaf(50, 4), leaf(4))
    kept = dict(zip(cut.stamps, cut.kept, strict=True))
    names = [node.name for node in joint.graph.graph.nodes][:2]
    assert kept == {names[0]: ("input", 0), names[1]: ("extra", 0)}
    (event,) = [event for event in events if isinstance(event, Partitioned)]
    assert event.saved_bytes == 4 * 4


def test_an_input_whose_copy_would_lie_otherwise_is_not_copied():
    _, cut = check_cut(lambda x, b: (x * x + b).sin().exp().sum(), leaf(50, 4), leaf(1, 4).expand(50, 4))
    assert len(cut.kept) == 2
    assert sorted(kind for kind, _ in cut.kept) == ["extra", "input"]
    (place,) = [stamp for stamp, (kind, _) in zip(cut.stamps, cut.kept, strict=True) if kind == "extra"]
    assert isinstance(place, int)  # a value of the forward


CHAIN = {
    "sin": lambda t, s: t.sin(),
    "mul": lambda t, s: t * s,
    "exp": lambda t, s: (t * 0.1).exp(),
    "mm": lambda t, s: t @ s,
    "sum": lambda t, s: t + s.sum(0),
    "softmax": lambda t, s: t.softmax(1),
    "view": lambda t, s: t.t(),
    "max": lambda t, s: torch.maximum(t, s),
    "drop": lambda t, s: torch.nn.functional.dropout(t, 0.5),
}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(CHAIN)), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=9),
    st.booleans(),
)
def test_a_cut_graph_means_the_joint_graph(steps, recompute):
    def f(x, y):
        values = [x, y]
        for name, first, second in steps:
            values.append(CHAIN[name](values[first % len(values)], values[-1 - second % len(values)]))
        return values[-1], values[len(values) // 2] * 1

    check_cut(f, leaf(3, 3), leaf(3, 3) * 2, recompute=recompute)


def test_the_cut_is_no_worse_than_keeping_everything():
    def f(x, w):
        for _ in range(3):
            x = ((x @ w).relu() + x.sigmoid() * 2).tanh()
        return x.sum()

    joint = joint_of(f, leaf(8, 8), leaf(8, 8))
    simple = run_passes(joint.graph, SIMPLIFY, Options(verify=True))
    assert len(simple.graph.nodes) <= len(joint.graph.graph.nodes)
    few, many = partition(joint, recompute=True), partition(joint, recompute=False)
    assert len(few.kept) < len(many.kept)


@pytest.mark.parametrize(
    ("program", "recompute", "expected"),
    [
        (lambda x: x.sin(), True, True),
        (lambda x: x.sin(), False, False),
        (lambda x: x.t(), False, True),
        (lambda x: x @ x, True, False),
        (lambda x: x.sum(), True, False),
        (lambda x: x.bernoulli(), True, False),
        (lambda x: x.sort()[0], True, False),
        (lambda x: torch.cat([x, x]), True, True),
    ],
)
def test_what_may_run_twice(program, recompute, expected):
    gm = trace(program, (torch.ones(2, 2),))
    (node,) = gm.graph.output_node().args[0]
    assert is_recomputable(node, recompute=recompute) is expected


def test_costs_are_bytes_and_views_are_not_kept():
    gm = trace(lambda x: x.double().t(), (torch.ones(2, 3),))
    (view,) = gm.graph.output_node().args[0]
    assert not is_keepable(view)
    assert kept_bytes(view.args[0]) == 48


def layers(x, *weights):
    for weight in weights:
        x = torch.softmax(x @ weight, -1).sin() @ weight.t()
    return x


@pytest.mark.parametrize("budget", [0.75, 0.5, 0.25, 0.0])
def test_a_budget_is_kept_by_running_expensive_calls_again(budget):
    inputs = [leaf(8, 8) for _ in range(5)]
    with recording() as events:
        check_cut(layers, *inputs)
        check_cut(layers, *inputs, budget=budget)
    whole, part = [event for event in events if isinstance(event, Partitioned)]
    assert part.saved_bytes <= budget * whole.saved_bytes
    assert part.recomputed > whole.recomputed


def test_a_smaller_budget_never_keeps_more():
    inputs = [leaf(4, 6), *(leaf(6, 6) for _ in range(4))]
    with recording() as events:
        for budget in (1.0, 0.8, 0.6, 0.4, 0.2, 0.0):
            check_cut(layers, *inputs, budget=budget)
    kept = [event.saved_bytes for event in events if isinstance(event, Partitioned)]
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] == 0


def test_random_draws_are_kept_whatever_the_budget():
    def drop(x, w):
        return torch.nn.functional.dropout(x @ w, 0.5).sin() @ w

    joint, cut = check_cut(drop, leaf(4, 4), leaf(4, 4), budget=0.0)
    assert not any(is_random(target) for target in calls(cut.backward))
    assert joint.inputs == 2
