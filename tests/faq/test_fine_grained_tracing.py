"""The page on fine-grained tracing, and the FAQ's part on it: which control leaves out, breaks or allows what."""

import importlib

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import UserError
from plumbline.compiler.base.events import Artifact, Broke, Captured, recording

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def fresh():
    plumbline.reset()


def aa_fn(x):
    return x + 1


def ab_fn(x):
    return x * 2


def b_fn(x):
    return x - 1


def call_stack(a_fn):
    def fn(x):
        return b_fn(a_fn(x))

    return fn


def a_fn(x):
    return ab_fn(aa_fn(x))


def captured(function, x, backend="eager"):
    """Return the result, the functions whose code became graphs, and the reasons of breaks."""
    with recording() as events:
        result = plumbline.compile(function, backend=backend)(x)
    graphs = {event.function for event in events if isinstance(event, Captured)}
    return result, sorted(graphs), [event.reason for event in events if isinstance(event, Broke)]


def test_compile_by_both_names():
    """`torch.compiler.compile` and `torch.compile` are one; here it is `plumbline.compile`, a decorator too."""

    @plumbline.compile(backend="eager")
    def decorated(x):
        return x + 1

    assert torch.equal(decorated(torch.ones(2)), plumbline.compile(aa_fn, backend="eager")(torch.ones(2)))


def test_the_whole_call_stack_is_traced():
    """Without a control every function of the call stack is captured."""
    result, graphs, breaks = captured(call_stack(a_fn), torch.ones(2))
    assert (result.tolist(), graphs, breaks) == ([3, 3], ["fn"], [])


@pytest.mark.parametrize("module", ["plumbline", "torch.compiler", "torch._dynamo"])
@pytest.mark.parametrize("form", ["decorator", "call"])
def test_disable_leaves_out_a_function_and_what_it_calls(module, form):
    """`disable` leaves out the function and everything that it calls, as a decorator or by a call."""
    disable = importlib.import_module(module).disable
    if form == "decorator":

        @disable
        def quiet(x):
            return ab_fn(aa_fn(x))
    else:
        quiet = disable(a_fn)
    result, graphs, breaks = captured(call_stack(quiet), torch.ones(2))
    assert (result.tolist(), graphs, breaks) == ([3, 3], ["fn"], ["disabled"])


def test_disable_without_a_decorator_is_for_those_who_call_the_new_function():
    """Without the decorator, only who calls what `disable` gave gets the uncompiled function."""
    quiet = plumbline.disable(a_fn)
    assert captured(call_stack(quiet), torch.ones(2))[2] == ["disabled"]
    plumbline.reset()
    assert captured(call_stack(a_fn), torch.ones(2))[2] == []


@pytest.mark.parametrize("module", ["plumbline", "torch.compiler", "torch._dynamo"])
def test_disable_of_one_frame_traces_what_it_calls(module):
    """`disable(recursive=False)` leaves out one frame; what it calls is captured."""
    quiet = importlib.import_module(module).disable(a_fn, recursive=False)
    result, graphs, _ = captured(call_stack(quiet), torch.ones(2))
    assert (result.tolist(), graphs) == ([3, 3], ["aa_fn", "ab_fn", "fn"])


@pytest.mark.parametrize("module", ["plumbline", "torch._dynamo"])
def test_disallow_in_graph_is_for_operators_and_global(module):
    """A disallowed operator breaks the graph wherever it is called, until it is allowed again."""
    marks = importlib.import_module(module)

    def fn(a):
        return torch.mul(torch.sub(torch.add(a, 1), 1), 2)

    marks.disallow_in_graph(torch.sub)
    try:
        for backend in ("eager", "aot_eager"):
            plumbline.reset()
            result, _, breaks = captured(fn, torch.ones(2), backend)
            assert (result.tolist(), breaks) == ([2, 2], ["disabled"])
    finally:
        marks.allow_in_graph(torch.sub)
    plumbline.reset()
    assert captured(fn, torch.ones(2))[2] == []


def test_disallow_in_graph_does_not_see_operators_of_aten():
    """Operators of ATen come after capture: to disallow `torch.ops.aten.add` does nothing to `torch.add`."""
    plumbline.disallow_in_graph(aten.add)
    try:
        _, _, breaks = captured(lambda x: torch.add(x, 1) + 2, torch.ones(2), "aot_eager")
        assert breaks == []
    finally:
        plumbline.allow_in_graph(aten.add)


@pytest.mark.parametrize("module", ["plumbline", "torch.compiler", "torch._dynamo"])
def test_allow_in_graph_makes_a_black_box(module):
    """An allowed function stands in the graph as it is, whatever its body has that capture cannot do."""

    @importlib.import_module(module).allow_in_graph
    def black_box(x):
        importlib.import_module("os").getcwd()  # capture would break here
        return x + 1

    with recording() as events:
        plumbline.compile(lambda x: black_box(x * 2) * 3, backend="aot_eager", fullgraph=True)(torch.ones(2))
    (joint,) = [event.text for event in events if isinstance(event, Artifact) and event.name == "joint"]
    assert "aten.add" in joint  # a black box for capture alone


class Doubled(torch.autograd.Function):
    """A function with a backward of its own, and a hook."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3  # not the derivative: to see that it is used


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_allow_in_graph_of_hooks_and_autograd_functions(backend):
    """`allow_in_graph` is for what capture has trouble with, such as hooks and autograd Functions."""
    seen = []

    @plumbline.allow_in_graph
    def with_function(x):
        return Doubled.apply(x)

    x = torch.ones(2, requires_grad=True)
    plumbline.compile(lambda x: with_function(x).sum(), backend=backend, fullgraph=True)(x).backward()
    assert x.grad.tolist() == [3, 3]
    assert seen == []


@pytest.mark.parametrize("module", ["plumbline", "torch._dynamo"])
def test_graph_break_breaks_where_it_stands(module):
    """`graph_break` ends the graph; the code before and after it is compiled."""
    stop = importlib.import_module(module).graph_break

    def fn(x):
        x = torch.sin(x)
        stop()
        return torch.cos(x)

    with recording() as events:
        result = plumbline.compile(fn, backend="eager")(torch.ones(2))
    assert torch.equal(result, torch.cos(torch.sin(torch.ones(2))))
    assert sum(isinstance(event, Captured) for event in events) == 2


def test_graph_break_at_the_start_prevents_inlining():
    """At the start of a function `graph_break` keeps it from being captured in its caller."""

    def inner(x):
        plumbline.graph_break()
        return x + 1

    result, graphs, _ = captured(lambda x: inner(x * 2) * 3, torch.ones(2))
    assert (result.tolist(), graphs) == ([9, 9], ["<lambda>", "inner"])


@pytest.mark.parametrize("module", ["plumbline", "torch.compiler"])
@pytest.mark.parametrize("question", ["is_compiling", "is_dynamo_compiling"])
def test_code_can_ask_whether_it_is_compiled(module, question):
    """Both questions are true in captured code, and false outside."""
    ask = getattr(importlib.import_module(module), question)
    assert ask() is False
    assert plumbline.compile(lambda x: (x, ask()), backend="eager")(1) == (1, True)
    assert ask() is False


def test_skip_is_answered_with_what_replaces_it():
    """`skip` is deprecated; the error names `disable(recursive=False)`."""
    with pytest.raises(UserError, match=r"disable\(recursive=False\)"):
        plumbline.skip(a_fn)
