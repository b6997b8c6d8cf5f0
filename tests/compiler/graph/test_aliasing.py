import torch

from plumbline.compiler.graph.aliasing import argument, escaping_roots, memory_root, mutated_roots, written_nodes
from plumbline.compiler.graph.tracer import trace

aten = torch.ops.aten


def node_of(gm, target, index=0):
    return [node for node in gm.graph.nodes if node.target is target][index]


def test_views_lead_to_the_memory_they_show():
    gm = trace(lambda x: (x + 1).t()[0].split(1)[1], (torch.ones(2, 2),))
    (last,) = gm.graph.output_node().args[0]
    assert memory_root(last).target is aten.add.Tensor


def test_results_of_calls_with_several_are_their_own_memory():
    gm = trace(lambda x: x.sort()[0], (torch.ones(2),))
    (last,) = gm.graph.output_node().args[0]
    assert memory_root(last) is last


def test_written_and_escaping_memory():
    def f(x):
        y = x + 1
        y[0].mul_(2)
        z = x * 3
        return z.view(-1)

    gm = trace(f, (torch.ones(2, 2),))
    write = node_of(gm, aten.mul_.Tensor)
    assert [node.target for node in written_nodes(write)] == [aten.select.int]
    assert {node.target for node in mutated_roots(gm.graph)} == {aten.add.Tensor}
    assert {node.target for node in escaping_roots(gm.graph)} == {aten.mul.Tensor}
    assert memory_root(write).target is aten.add.Tensor


def test_arguments_are_found_by_position_name_or_default():
    gm = trace(lambda x: torch.add(x, x, alpha=2) + x, (torch.ones(2),))
    assert argument(node_of(gm, aten.add.Tensor), 2) == 2
    assert argument(node_of(gm, aten.add.Tensor, 1), 2) == 1
