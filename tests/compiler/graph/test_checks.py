import pytest
import torch
from torch import fx

from plumbline.compiler.base.errors import InternalError
from plumbline.compiler.base.options import Options
from plumbline.compiler.base.origin import Origin
from plumbline.compiler.graph import passes
from plumbline.compiler.graph.checks import CHECKS, verify
from plumbline.compiler.graph.fx_nodes import add_call
from plumbline.compiler.graph.node_values import value_of
from plumbline.compiler.graph.passes import run_passes
from plumbline.compiler.graph.tracer import trace

aten = torch.ops.aten


def traced(function=lambda x: (x.sin() + 1).cos()):
    return trace(function, (torch.ones(3),))


def first(gm, target):
    return next(node for node in gm.graph.nodes if node.target is target)


def reads_too_early(gm):
    gm.graph.output_node().prepend(first(gm, aten.sin.default))


def two_outputs(gm):
    gm.graph.output(())


def no_tuple(gm):
    gm.graph.output_node().args = (first(gm, aten.cos.default),)


def late_input(gm):
    with gm.graph.inserting_before(gm.graph.output_node()):
        gm.graph.placeholder("late").meta["val"] = 1


def undescribed(gm):
    del first(gm, aten.sin.default).meta["val"]


def real_memory(gm):
    first(gm, aten.sin.default).meta["val"] = torch.ones(3)


def method(gm):
    node = first(gm, aten.sin.default)
    with gm.graph.inserting_before(node):
        new = gm.graph.call_method("sin", node.args)
    new.meta.update(node.meta)
    node.replace_all_uses_with(new)


def write(gm):
    node = first(gm, aten.cos.default)
    with gm.graph.inserting_before(node):
        add_call(gm.graph, aten.add_.Tensor, (node.args[0], 1), value=value_of(node))


def wrong_example(gm):
    node = first(gm, aten.add.Tensor)
    node.meta["val"] = value_of(node).new_empty(4)


@pytest.mark.parametrize(
    ("spoil", "name"),
    [
        (reads_too_early, "every_argument_is_defined_before_use"),
        (two_outputs, "there_is_one_output_and_it_is_last"),
        (no_tuple, "there_is_one_output_and_it_is_last"),
        (late_input, "inputs_come_first"),
        (undescribed, "every_value_is_described"),
        (real_memory, "every_value_is_described"),
        (method, "every_call_is_an_operator"),
        (write, "nothing_is_mutated"),
        (wrong_example, "example_values_are_what_the_operators_give"),
    ],
)
def test_each_check_names_itself(spoil, name):
    gm = traced()
    verify(gm, functional=True, costly=True)
    spoil(gm)
    with pytest.raises(InternalError, match=f"check {name} after planted"):
        verify(gm, functional=True, costly=True, after="planted")
    assert name in [check.name for check in CHECKS]


def test_a_pass_may_not_give_two_results_one_memory(monkeypatch):
    gm = trace(lambda x: (x.max(1).values, x.max(1).values), (torch.ones(3, 3),))
    run_passes(gm, ("share_common_nodes",), Options(verify=True))
    monkeypatch.setattr(passes, "_must_stay_apart", lambda *args: False)
    with pytest.raises(InternalError, match=r"output 1 has become .* results_stay_apart after share_common_nodes"):
        run_passes(gm, ("share_common_nodes",), Options(verify=True))


def test_equal_names_are_found():
    gm = traced()
    first(gm, aten.sin.default)._rename("twin")
    first(gm, aten.cos.default).name = "twin"
    with pytest.raises(InternalError, match="names_are_unique"):
        verify(gm)


def test_a_failure_shows_the_users_line():
    gm = traced()
    first(gm, aten.cos.default).meta.update(origin=Origin("model.py", 12, "forward"))
    write(gm)
    first(gm, aten.add_.Tensor).meta.update(origin=Origin("model.py", 11, "forward"))
    with pytest.raises(InternalError, match=r"^model\.py:11: "):
        verify(gm, functional=True)


def test_an_empty_graph_has_no_output():
    gm = fx.GraphModule({}, fx.Graph())
    gm.graph.placeholder("x").meta["val"] = 1
    with pytest.raises(InternalError, match="outputs"):
        verify(gm)
