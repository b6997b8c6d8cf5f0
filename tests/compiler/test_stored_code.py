import pytest
import torch
from torch import fx

from plumbline.compiler.base.options import Options
from plumbline.compiler.base.symbol_facts import make_shape_environment, make_symbolic_size
from plumbline.compiler.codegen.c_text import CText
from plumbline.compiler.codegen.host_call import HostProgram
from plumbline.compiler.stored.plain_data import NotPlain
from plumbline.compiler.stored_code import code_of_plain, plain_code

aten = torch.ops.aten
NO_KERNELS = CText("", {}, 0, (), 0)


def host(text, **objects):
    cpu = torch.device("cpu")
    return HostProgram(text, objects, "lambda v_x: v_x.dim() == 1", {}, cpu, 0, calls=True, repeats=True, draws=False)


def graph_of(target, *args, **kwargs):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(target)
    node.args, node.kwargs = (x, *args), kwargs
    graph.output((node,))
    return fx.GraphModule({}, graph)


def test_code_runs_and_the_graph_beside_it_where_inputs_lie_otherwise():
    text = "def run(given):\n    v_x, = given\n    return (call_0(v_x),)\n"
    form = plain_code(graph_of(aten.sin.default), host(text, call_0=aten.cos.default), NO_KERNELS)
    call, op_by_op = code_of_plain(form, Options(strict=True))
    x = torch.randn(3)
    assert torch.equal(call(x)[0], x.cos())
    assert torch.equal(call(x[None])[0], x[None].sin())
    assert torch.equal(op_by_op(x)[0], x.sin())


def test_an_error_of_the_code_is_raised_or_the_graph_goes_on(tmp_path):
    form = plain_code(graph_of(aten.sin.default), host("def run(given):\n    return 1 / 0\n"), NO_KERNELS)
    x = torch.randn(3)
    with pytest.raises(ZeroDivisionError):
        code_of_plain(form, Options(strict=True))[0](x)
    going_on = code_of_plain(form, Options(bundle_directory=str(tmp_path)))[0]
    assert torch.equal(going_on(x)[0], x.sin())


def test_a_symbol_in_an_argument_is_refused_and_an_argument_named_size_is_not():
    size = make_symbolic_size(make_shape_environment(), 5, "rows")
    with pytest.raises(NotPlain, match="symbol"):
        plain_code(
            graph_of(aten.expand.default, (size, 3)), host("def run(given):\n    return (*given,)\n"), NO_KERNELS
        )
    plain_code(graph_of(aten.expand.default, size=(5, 3)), host("def run(given):\n    return (*given,)\n"), NO_KERNELS)


def test_code_for_another_device_is_refused():
    text = "def run(given):\n    return (*given,)\n"
    elsewhere = HostProgram(text, {}, "lambda v_x: True", {}, torch.device("cuda", 0), 0, False, False, False)
    with pytest.raises(NotPlain, match="cuda"):
        plain_code(graph_of(aten.sin.default), elsewhere, NO_KERNELS)
