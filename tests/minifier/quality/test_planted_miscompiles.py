"""How small and how cheap: operators left and queries asked for planted faults in graphs of 38 and 152 operators."""

import pytest
import torch
from torch import fx

from plumbline.minifier.graphs.graph_case import GraphCase, case_of
from plumbline.minifier.graphs.subgraph import record, subgraph
from plumbline.minifier.reduce.graph_judge import RULES, GraphRules, judge_case
from plumbline.minifier.reduce.reduction import GraphReduction, reduce_graph
from support.faulty_backends import FAULTS, LEAST_OPS, backend, calls, layers, split_third

aten = torch.ops.aten
# Judgements with a compile, the first one and those of the input passes included.
MOST_QUERIES = {"gelu": 6, "relu": 6, "pair": 9, "trio": 12, "far": 15, "value": 8}


def reduced(gm: fx.GraphModule, inputs, compile_graph, rules: GraphRules = RULES["aot"]) -> GraphReduction:
    case = case_of(gm, inputs)
    first = judge_case(case, compile_graph, rules)
    assert first.signature is not None, first.sentence
    return reduce_graph(case, first, compile_graph, rules)


def targets(case: GraphCase) -> list[str]:
    return [str(op.target) for op in case.ops()]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("size", [30, 150])
def test_planted_fault_is_minimal_in_few_queries(fault, size):
    gm, inputs = layers(size)
    compile_graph = backend(FAULTS[fault])
    found = reduced(gm, inputs, compile_graph)
    assert found.complete
    assert len(found.case) == LEAST_OPS[fault], targets(found.case)
    assert found.queries <= MOST_QUERIES[fault], found.log
    assert all(size <= 2 for value in found.case.inputs for size in value.shape)
    again = judge_case(found.case, compile_graph, RULES["aot"])
    assert again.signature is not None
    assert found.signature.matches(again.signature)


def test_a_pair_that_is_apart_is_found_from_near_to_far():
    """The later operators hide the first wrong value; without its own output every prefix but the whole is right."""
    gm, inputs = layers(600)
    compiled = 0

    def compile_graph(graph: fx.GraphModule, values):
        nonlocal compiled
        compiled += sum(node.op == "call_function" for node in graph.graph.nodes)
        return backend(FAULTS["far"])(graph, values)

    case = case_of(gm, inputs)
    first = judge_case(case, compile_graph, RULES["aot"])
    compiled = 0
    found = reduce_graph(case, first, compile_graph, RULES["aot"])
    assert len(found.case) == LEAST_OPS["far"], targets(found.case)
    assert found.queries <= MOST_QUERIES["far"], found.log
    assert compiled < 800


@pytest.mark.parametrize("fault", FAULTS)
def test_result_is_one_minimal(fault):
    """No operator of the result can be left out: each smaller graph is right under the faulty backend."""
    gm, inputs = layers(30, seed=3)
    compile_graph = backend(FAULTS[fault])
    case = reduced(gm, inputs, compile_graph).case
    for op in case.ops():
        rest = [other for other in case.ops() if other is not op]
        if rest:
            smaller = subgraph(record(case), rest)
            assert judge_case(smaller, compile_graph, RULES["aot"]).signature is None, targets(smaller)


def test_several_results_of_one_operator():
    gm, inputs = layers(30)
    found = reduced(gm, inputs, backend(split_third))
    assert targets(found.case) == ["aten.split.Tensor"]


def test_a_refusal_to_compile_is_reduced_to_the_refused_operator():
    """An exception shows in no output: prefixes by bisection, 38 operators."""
    gm, inputs = layers(30)
    refuses = backend(lambda *_: NotImplemented, refuse=lambda node: calls(node, aten.cumsum.default))
    found = reduced(gm, inputs, refuses)
    assert targets(found.case) == ["aten.cumsum.default"]
    assert found.signature.phase == "compile"
    assert found.queries <= 15


def test_a_wrong_gradient_is_reduced_where_no_output_shows_it():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient * x.cos() * 1.5

    def rule(gm, node, args, kwargs):
        return Wrong.apply(args[0]) if calls(node, torch.sin) else NotImplemented

    def program(x, w):
        for _ in range(4):
            x = torch.tanh(x @ w) + torch.exp(-x * x)
        return (torch.sin(x) * 2).sum()

    inputs = (torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True))
    found = reduced(fx.symbolic_trace(program), inputs, backend(rule), RULES["dynamo"])
    assert found.signature.aspect == "gradients"
    assert [op.name for op in found.case.ops()] == ["sin"]
    assert found.queries <= 20


def test_a_fault_that_hides_when_everything_is_observed():
    """A backend that is right as soon as the inner value is an output: looking does not help, cutting does."""

    def rule(gm, node, args, kwargs):
        if not (calls(node, aten.mul.Tensor) and calls(node.args[0], aten.exp.default)):
            return NotImplemented
        given = next(n for n in gm.graph.nodes if n.op == "output").args[0]
        return args[0] * args[1] * (1 if node.args[0] in given else 1.1)

    graph = fx.Graph()
    x = graph.placeholder("x")
    here = x
    for target in (aten.sin.default, aten.cos.default, aten.tanh.default, aten.exp.default):
        here = graph.call_function(target, (here,))
    here = graph.call_function(aten.mul.Tensor, (here, x))
    for target in (aten.sigmoid.default, aten.neg.default, aten.abs.default):
        here = graph.call_function(target, (here,))
    graph.output((here,))
    found = reduced(fx.GraphModule({}, graph), (torch.randn(4),), backend(rule))
    assert targets(found.case) == ["aten.exp.default", "aten.mul.Tensor"]
    assert found.queries <= 20


def test_a_doubtful_rounding_earlier_in_the_graph_is_not_taken_for_the_bug():
    """An operator that is off by a few ulp stands before the one that is grossly wrong."""

    def rule(gm, node, args, kwargs):
        if calls(node, aten.sin.default):
            return aten.sin(args[0]) * (1 + 6e-7)
        return aten.relu(args[0]) + 1 if calls(node, aten.relu.default) else NotImplemented

    graph = fx.Graph()
    x = graph.placeholder("x")
    s = graph.call_function(aten.sin.default, (x,))
    graph.output((graph.call_function(aten.relu.default, (s,)),))
    found = reduced(fx.GraphModule({}, graph), (torch.randn(64),), backend(rule))
    assert targets(found.case) == ["aten.relu.default"]


def test_a_write_to_an_input_is_kept_apart_between_queries():
    def rule(gm, node, args, kwargs):
        return args[0].add_(args[1]).add_(1) if calls(node, aten.add_.Tensor) else NotImplemented

    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(aten.sin.default, (x,))
    w = graph.call_function(aten.add_.Tensor, (a, 2.0))
    graph.output((graph.call_function(aten.cos.default, (w,)),))
    found = reduced(fx.GraphModule({}, graph), (torch.randn(4),), backend(rule))
    assert targets(found.case) == ["aten.add_.Tensor"]
