import operator

import pytest
import torch
from torch import fx

from plumbline.minifier.graphs.graph_case import GraphCase, case_key, case_of
from plumbline.minifier.graphs.subgraph import bypassed, cone_levels, neighbours, record, rewritten, subgraph

aten = torch.ops.aten


def case_from(function, *inputs) -> GraphCase:
    return case_of(fx.symbolic_trace(function), inputs)


def node(case, name):
    return next(n for n in case.graph.graph.nodes if n.name == name)


def chain(x):
    a = torch.sin(x)
    b = torch.cos(a)
    return torch.exp(b + a)


def test_a_cut_off_value_is_what_eager_computed_there():
    x = torch.randn(3)
    case = case_from(chain, x)
    part = subgraph(record(case), [node(case, "exp")])
    assert [n.name for n in part.ops()] == ["exp"]
    assert torch.equal(part.inputs[0], torch.cos(x.sin()) + x.sin())
    assert torch.equal(part.run(*part.fresh_inputs())[0], chain(x))


def test_results_are_kept_outputs_and_what_nobody_reads():
    case = case_from(chain, torch.randn(3))
    part = subgraph(record(case), [node(case, "sin"), node(case, "exp")])
    assert len(part.run(*part.fresh_inputs())) == 2


def test_a_watched_value_is_a_result_besides():
    case = case_from(chain, torch.randn(3))
    part = subgraph(record(case), [node(case, "sin"), node(case, "cos")], watched=node(case, "sin"))
    assert len(part.run(*part.fresh_inputs())) == 2


def test_neighbours_are_those_read_and_those_that_read_the_nearest_first():
    def two(x):
        near = torch.split(x.sin(), 2)[0].cos()
        return torch.tan(near + 1), torch.exp(torch.ones(2))

    case = case_from(two, torch.arange(4.0))
    names = [other.name for other in neighbours(node(case, "cos"))]
    assert names[:3] in (["cos", "split", "add"], ["cos", "add", "split"])
    assert set(names[3:5]) == {"sin", "tan"}
    assert set(names[5:]) == {op.name for op in case.ops()} - set(names[:5])


def test_values_are_recorded_before_a_later_write():
    def writes(x):
        a = x * 2
        b = a + 1
        a.mul_(0)
        return b + a

    case = case_from(writes, torch.ones(2))
    trace = record(case)
    assert trace.values[node(case, "mul")].tolist() == [2.0, 2.0]


def test_parts_of_a_split_stay_with_it_or_become_inputs():
    def pieces(x):
        parts = torch.split(x.sin(), 2)
        return torch.cat([parts[1], parts[0]]).exp()

    case = case_from(pieces, torch.arange(4.0))
    trace = record(case)
    assert [n.name for n in case.ops()] == ["sin", "split", "cat", "exp"]
    whole = subgraph(trace, [node(case, "split")])
    assert len(whole.run(*whole.fresh_inputs())) == 2
    after = subgraph(trace, [node(case, "cat")])
    assert len(after.inputs) == 2


def test_a_list_read_whole_is_cut_into_its_tensors():
    case = case_from(lambda x: torch.cat(torch.split(x, 2)), torch.arange(4.0))
    part = subgraph(record(case), [node(case, "cat")])
    assert len(part.inputs) == 2
    assert torch.equal(part.run(*part.fresh_inputs())[0], torch.arange(4.0))


def test_what_no_input_can_hold_is_computed():
    def drawn(x):
        return torch.randn(2, generator=torch.Generator()) + x

    graph = fx.Graph()
    x = graph.placeholder("x")
    generator = graph.call_function(torch.Generator)
    draw = graph.call_function(torch.randn, (2,), {"generator": generator})
    graph.output((graph.call_function(operator.add, (draw, x)),))
    case = case_of(fx.GraphModule({}, graph), (torch.ones(2),))
    part = subgraph(record(case), [node(case, "randn")])
    assert len(part.ops()) == 2


def test_levels_of_a_cone_are_distances():
    case = case_from(chain, torch.randn(3))
    record(case)
    levels = [[n.name for n in level] for level in cone_levels(node(case, "exp"))]
    assert levels == [["exp"], ["add"], ["cos", "sin"]]


def test_bypassing_drops_what_only_the_bypassed_read():
    case = case_from(lambda x, y: torch.exp(torch.sin(x) * torch.cos(y)), torch.ones(2), torch.zeros(2))
    record(case)
    short = bypassed(case, node(case, "mul"), node(case, "sin"))
    assert [n.name for n in short.ops()] == ["sin", "exp"]
    assert len(short.inputs) == 1
    assert torch.equal(short.run(*short.inputs)[0], torch.ones(2).sin().exp())


def test_held_tensors_become_inputs():
    class Holds(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.full((2,), 3.0))

        def forward(self, x):
            return x * self.weight

    case = case_of(fx.symbolic_trace(Holds()), (torch.ones(2),))
    assert len(case.inputs) == 2
    assert case.inputs[1].requires_grad


def test_equal_cases_have_equal_keys_whatever_their_names():
    one, other = case_from(chain, torch.ones(3)), case_from(chain, torch.ones(3))
    for renamed in other.graph.graph.nodes:
        renamed.name = f"other_{renamed.name}"
    assert case_key(one) == case_key(other)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: GraphCase(c.graph, (torch.zeros(3),)),
        lambda c: GraphCase(c.graph, (torch.ones(3).double(),)),
        lambda c: GraphCase(c.graph, (torch.ones(3).requires_grad_(),)),
        lambda c: GraphCase(c.graph, (torch.ones(6)[::2],)),
        lambda c: case_from(lambda x: torch.sin(x) * 2, torch.ones(3)),
    ],
)
def test_what_a_compiler_could_see_changes_the_key(change):
    case = case_from(lambda x: torch.sin(x) * 3, torch.ones(3))
    assert case_key(change(case)) != case_key(case)


def test_literals_are_rewritten_in_arguments_only():
    case = case_from(lambda x: x.view(4, 2).sum(1), torch.ones(8))
    smaller = rewritten(case, (torch.ones(4),), lambda leaf: 2 if leaf == 4 else leaf)
    assert smaller.run(*smaller.inputs)[0].tolist() == [2.0, 2.0]


def test_runs_do_not_share_inputs():
    case = case_from(lambda x: x.add_(1), torch.zeros(2))
    case.run(*case.fresh_inputs())
    assert case.inputs[0].tolist() == [0.0, 0.0]
