import torch

from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.lowering.needed_values import needed_nodes


def needed(function, *inputs):
    graph = trace(function, inputs).graph
    return {str(node.target) for node in needed_nodes(graph) if node.op == "call_function"}


def test_what_a_result_reads_is_needed():
    assert needed(lambda x: x.exp() + 1, torch.ones(2)) == {"aten.exp.default", "aten.add.Tensor"}


def test_a_tensor_of_the_same_size_reads_nothing():
    assert needed(lambda x: x.exp().new_zeros((2,)), torch.ones(2)) == {"aten.new_zeros.default"}


def test_what_may_fail_needs_what_it_reads_and_is_not_read_itself():
    def program(x, places):
        return x.exp()[places.abs()].new_zeros((1,))

    found = needed(program, torch.ones(2), torch.tensor([0]))
    assert found == {"aten.new_zeros.default", "aten.exp.default", "aten.abs.default"}
