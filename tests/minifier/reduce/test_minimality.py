"""The check of a result: what can still go is found, and what was tried in vain is counted."""

import torch
from torch import fx

from plumbline.minifier.graphs.graph_case import GraphCase, case_of
from plumbline.minifier.reduce.graph_judge import RULES, GraphReport, judge_case, runs_eagerly
from plumbline.minifier.reduce.minimality import minimality, without_each_operator
from plumbline.minifier.reduce.problem import Budget, Problem, Questions
from plumbline.minifier.reduce.reduction import reduce_graph
from plumbline.minifier.repro.repro_script import certificate
from support.faulty_backends import backend, calls

aten = torch.ops.aten


def wrong_relu(gm, node, args, kwargs):
    return aten.sin(args[0]) if calls(node, aten.relu.default) else NotImplemented


def chain() -> GraphCase:
    graph = fx.Graph()
    here = graph.placeholder("x")
    for target in (aten.cos.default, aten.relu.default, aten.neg.default, aten.exp.default):
        here = graph.call_function(target, (here,))
    graph.output((here,))
    return case_of(fx.GraphModule({}, graph), (torch.linspace(-1, 2, 12).reshape(3, 4),))


def posed(case: GraphCase, budget: Budget | None = None) -> Problem[GraphCase, GraphReport]:
    rules = RULES["aot"]
    questions = Questions(
        ask=lambda candidate: judge_case(candidate, backend(wrong_relu), rules),
        accepts=lambda report: report.signature is not None,
        valid=lambda candidate: runs_eagerly(candidate, rules),
        key=lambda candidate: id(candidate),
    )
    return Problem(case, questions, len, budget)


def test_what_can_still_go_is_taken_out() -> None:
    problem, rounds = posed(chain()), 0

    def again() -> bool:
        nonlocal rounds
        rounds += 1
        return True

    tried = minimality(problem, again)
    assert [str(op.target) for op in problem.current.ops()] == ["aten.relu.default"]
    assert rounds >= 3
    assert set(tried) == {"operators", "sizes", "values"}


def test_a_budget_that_runs_out_gives_no_certificate() -> None:
    assert minimality(posed(chain(), Budget(queries=2)), lambda: True) == {}
    assert minimality(posed(chain()), lambda: False) == {}


def test_a_reduction_says_what_was_tried() -> None:
    case = chain()
    first = judge_case(case, backend(wrong_relu), RULES["aot"])
    found = reduce_graph(case, first, backend(wrong_relu), RULES["aot"])
    assert found.complete
    assert found.tried["operators"] == len(without_each_operator(found.case)) == 0
    sizes = {size for value in found.case.inputs for size in value.shape if size > 1}
    assert found.tried["sizes"] >= len(sizes)
    assert found.checks >= 1


def test_the_certificate_claims_only_what_was_tried() -> None:
    assert certificate({}, 0)[0] == "1-minimal:  not checked"
    lines = certificate({"operators": 3, "sizes": 0}, 5)
    assert lines[:2] == [
        "Reproduces: 5/5 in fresh processes",
        "1-minimal:  yes: tried without, all in vain: 3 operators",
    ]
