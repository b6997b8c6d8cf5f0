import torch
from torch import fx

from plumbline.compiler.base.origin import Origin
from plumbline.compiler.graph.graph_printing import graph_text
from plumbline.compiler.graph.node_values import placeholders, type_text
from plumbline.compiler.graph.tracer import trace


def test_the_text_of_a_small_graph():
    gm = trace(lambda x: (x.t() * 2.5).sum(0), (torch.ones(2, 3),))
    assert graph_text(gm).text == (
        "import operator\n\n"
        "def forward(input_0):\n"
        "    # input_0: f32[2, 3]\n"
        "    t_default = torch.ops.aten.t.default(input_0)  # f32[3, 2] strides (1, 3)\n"
        "    mul_tensor = torch.ops.aten.mul.Tensor(t_default, 2.5)  # f32[3, 2] strides (1, 3)\n"
        "    sum_dim_int_list = torch.ops.aten.sum.dim_IntList(mul_tensor, [0])  # f32[2]\n"
        "    return (sum_dim_int_list,)\n"
    )


def test_user_lines_stand_above_their_calls():
    gm = trace(lambda x: x.sin(), (torch.ones(2),))
    for node in gm.graph.nodes:
        node.meta["origin"] = Origin("model.py", 7, "forward")
    assert "    # model.py:7\n    sin_default = " in graph_text(gm).text


def test_what_has_no_literal_is_bound_by_name():
    def own(x):
        return x * 3

    graph = fx.Graph()
    graph.output((graph.call_function(own, (graph.placeholder("own"),)),))
    text = graph_text(fx.GraphModule({}, graph))
    assert own in text.scope.values()
    assert torch.equal(text.run()(torch.ones(2))[0], torch.full((2,), 3.0))


def test_constants_are_bound_by_name():
    text = graph_text(trace(lambda x: x + torch.tensor([1.0, 2.0]), (torch.ones(2),)))
    assert [type(value) for value in text.scope.values()] == [torch.Tensor]
    assert torch.equal(text.run()(torch.ones(2))[0], torch.tensor([2.0, 3.0]))


def test_torch_level_graphs_print_too():
    def f(x):
        return torch.nn.functional.gelu(x.view(-1)) + torch.clamp(x.view(-1), min=0.5)

    gm = fx.symbolic_trace(f)
    x = torch.randn(2, 2)
    assert torch.equal(graph_text(gm).run()(x)[0], f(x))


def test_odd_numbers_keep_their_value():
    gm = trace(lambda x: (x + float("inf"), x * -0.0, x == float("nan"), x.to(torch.complex64) * 2j), (torch.ones(2),))
    for mine, eager in zip(graph_text(gm).run()(torch.ones(2)), gm(torch.ones(2)), strict=True):
        assert torch.equal(torch.view_as_real(mine) if mine.is_complex() else mine.isinf(), _plain(eager))


def _plain(value):
    return torch.view_as_real(value) if value.is_complex() else value.isinf()


def test_types_are_short():
    gm = trace(lambda x: x, (torch.ones(2, 3, dtype=torch.bfloat16).t(),))
    assert type_text(placeholders(gm.graph)[0].meta["val"]) == "bf16[3, 2] strides (1, 3)"
    assert type_text((torch.ones(1), 3)) == "(f32[1], int)"
