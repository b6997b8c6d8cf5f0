"""The FAQ on training, whole graphs, crashes and slow compilation: what is captured, cut, wrapped and written."""

import inspect
import logging

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import Unsupported, UserError
from plumbline.compiler.base.events import Artifact, BackendCalled, Captured, FellBack, Partitioned, recording
from plumbline.testing import lowering_of, replace_lowering

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def fresh():
    plumbline.reset()


def broken_in_two(x):
    y = x.sin()
    plumbline.graph_break()
    return y.cos().sum()


def test_each_segment_of_forward_has_its_own_backward():
    """Each captured segment of a forward gets a backward segment."""
    x = torch.randn(4, requires_grad=True)
    with recording() as events:
        plumbline.compile(broken_in_two, backend="aot_eager")(x).backward()
    halves = [event.name for event in events if isinstance(event, Artifact) and event.stage == "autograd"]
    assert halves.count("forward") == halves.count("backward") == 2
    assert torch.equal(x.grad, torch.autograd.grad(broken_in_two(x), x)[0])


def test_forward_and_backward_are_cut_where_least_is_kept():
    """The pair is cut by a minimum cut, so that little is kept between forward and backward; this is optional."""

    def chain(x):
        return x.sin().exp().cos().sum()

    kept = {}
    for backend in ("aot_eager", "aot_eager_decomp_partition"):
        with recording() as events:
            plumbline.compile(chain, backend=backend)(torch.randn(8, requires_grad=True)).backward()
        (kept[backend],) = [event.saved_bytes for event in events if isinstance(event, Partitioned)]
    assert kept["aot_eager_decomp_partition"] < kept["aot_eager"]


def test_the_pair_is_wrapped_in_an_autograd_function():
    """Forward and backward are one autograd Function: a result has one step of history."""
    result = plumbline.compile(lambda x: x.sin().cos(), backend="aot_eager")(torch.ones(2, requires_grad=True))
    assert isinstance(result.grad_fn, torch.autograd.function.BackwardCFunction)
    assert [type(step).__name__ for step, _ in result.grad_fn.next_functions if step] == ["AccumulateGrad"]


def test_backward_runs_compiled_and_eager_steps_in_eagers_engine():
    """`backward()` is eager's: a compiled backward is one of its steps, beside those of operators outside."""
    order = []
    x = torch.ones(3, requires_grad=True)
    before = x * 2
    inside = plumbline.compile(lambda y: y.sin() * y, backend="aot_eager")(before)
    after = inside.exp()
    for name, value in (("before", before), ("inside", inside), ("after", after)):
        value.register_hook(lambda gradient, name=name: order.append(name))
    after.sum().backward()
    assert order == ["after", "inside", "before"]
    y = torch.ones(3, requires_grad=True)
    ((y * 2).sin() * (y * 2)).exp().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


# --- do I still need to export whole graphs -----------------------------------------------------------------------


def test_most_models_need_no_whole_graph():
    """`compile` takes a program that is several graphs as it is."""
    x = torch.randn(4)
    assert torch.equal(plumbline.compile(broken_in_two, backend="eager")(x), broken_in_two(x))


@pytest.mark.parametrize("whole", ["nopython", "fullgraph"])
def test_a_whole_graph_can_be_demanded(whole):
    """`nopython=True`, later `fullgraph=True`, makes sure that there is one graph."""
    line = inspect.getsourcelines(broken_in_two)[1] + 2
    with pytest.raises(Unsupported, match=rf":{line}: "):
        plumbline.compile(broken_in_two, backend="eager", **{whole: True})(torch.ones(2))


def test_a_whole_graph_can_be_exported():
    """Those who need the graph itself get it, with its guards and its inputs."""
    exported = plumbline.export(lambda x: x.sin() + 1)(torch.ones(3))
    assert [node.name for node in exported.graph_module.graph.nodes] == ["input_0", "sin", "add", "output"]


# --- why is my code crashing --------------------------------------------------------------------------------------


def fails_from(plant, program, *args):
    """Return the first backend of the ladder that is not right while a fault is planted."""
    expected = program(*args)
    for backend in ("eager", "aot_eager", "inductor"):
        with plant():
            result = plumbline.compile(program, backend=backend)(*args)
        if not torch.equal(result, expected):
            return backend
    return None


@pytest.mark.cc
def test_the_first_backend_that_fails_tells_the_part_at_fault():
    """eager, then aot_eager, then inductor: each adds one part, and a fault shows from the one that has it on."""

    def program(x):
        return x.relu() + 1

    def nothing():
        return plumbline.config.patch({})

    def code_generation():
        return replace_lowering(aten.relu.default, lowering_of(aten.abs.default))

    x = torch.tensor([-1.0, 2.0])
    assert fails_from(nothing, program, x) is None
    assert fails_from(code_generation, program, x) == "inductor"


def test_backend_eager_runs_the_captured_graph_alone():
    """`backend="eager"` captures and lets PyTorch run the graph: nothing is traced to ATen."""
    with recording() as events:
        plumbline.compile(lambda x: x.sin(), backend="eager")(torch.ones(2, requires_grad=True))
    assert [event.backend for event in events if isinstance(event, BackendCalled)] == ["eager"]
    assert not [event for event in events if isinstance(event, Artifact) and event.stage == "autograd"]


def test_backend_aot_eager_traces_the_backward_and_generates_no_code():
    """`backend="aot_eager"` traces the backward too, and PyTorch runs both."""
    with recording() as events:
        plumbline.compile(lambda x: x.sin(), backend="aot_eager")(torch.ones(2, requires_grad=True))
    stages = {event.stage for event in events if isinstance(event, Artifact)}
    assert "autograd" in stages
    assert "codegen" not in stages


@pytest.mark.cc
def test_backend_inductor_generates_code_and_is_the_default():
    """`backend="inductor"` compiles both halves."""
    for settings in ({}, {"backend": "inductor"}):
        plumbline.reset()
        with recording() as events:
            plumbline.compile(lambda x: x.sin(), **settings)(torch.ones(2))
        assert "codegen" in {event.stage for event in events if isinstance(event, Artifact)}


# --- why is compilation slow --------------------------------------------------------------------------------------


def test_each_file_of_the_debug_folder_has_a_switch(tmp_path):
    """Every file of the debug folder can be switched; the profile and the diagram are off unless asked for."""
    trace = plumbline.config.trace
    assert (trace.graph_diagram, trace.compile_profile, trace.fx_graph) == (False, False, True)
    wanted = {"trace.enabled": True, "debug_dir_root": str(tmp_path), "trace.graph_diagram": True}
    wanted["trace.guards"] = False
    with plumbline.config.patch(wanted):
        plumbline.compile(lambda x: x.sin(), backend="eager")(torch.ones(2))
    names = {path.name for path in tmp_path.glob("*/001-*/*")} or {path.name for path in tmp_path.glob("*/*/*")}
    assert "13_captured_graph.svg" in names
    assert not any("guards" in name or "profile" in name for name in names)


def test_a_function_is_compiled_again_up_to_the_limit():
    """Failed guards compile a function again, up to `cache_size_limit` times; then it runs eagerly."""
    with plumbline.config.patch(cache_size_limit=3), recording() as events:
        run = plumbline.compile(lambda x, word: x * len(word), backend="eager")
        for count in range(5):
            assert run(torch.ones(1), "a" * count).item() == count
    assert sum(isinstance(event, Captured) for event in events) == 3


def test_the_profiler_observes_and_accumulates():
    """The profiler is a backend that only observes; failures of guards add up while it is on."""
    with plumbline.CompileProfiler() as prof:
        profiler_model = plumbline.compile(lambda x, n: x * n, backend=prof)
        for n in ("", "a", "bb"):
            assert torch.equal(profiler_model(torch.ones(2), len(n)), torch.full((2,), float(len(n))))
    assert prof.report().count("was recompiled") >= 1
    assert prof.frame_count >= 2


# --- settings that the documents name -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cache_size_limit", 64),
        ("capture_func_transforms", True),
        ("capture_scalar_outputs", True),
        ("fallback_random", True),
        ("triton.cudagraphs", False),
        ("trace_numpy", False),
        ("verbose", True),
        ("suppress_errors", True),
        ("trace.graph_diagram", True),
    ],
)
def test_every_setting_of_the_documents_can_be_made(name, value):
    """The settings that the documents name can be made by that name, as attributes and by `patch`."""
    before = getattr(plumbline.config, name)
    with plumbline.config.patch({name: value}):
        assert getattr(plumbline.config, name) == value
        assert torch.equal(plumbline.compile(torch.sin, backend="eager")(torch.ones(2)), torch.sin(torch.ones(2)))
    assert getattr(plumbline.config, name) == before


def test_an_unknown_setting_is_answered_with_the_nearest():
    """A name that does not exist is an error that says which one is near."""
    with pytest.raises(AttributeError, match="did you mean cache_size_limit"):
        plumbline.config.cache_size_limits = 1
    with pytest.raises(AttributeError, match="set_logs"):
        plumbline.config.log_level = logging.INFO
    with pytest.raises(UserError, match="did you mean 'aot_eager'"):
        plumbline.compile(torch.sin, backend="aot_eagr")
    with pytest.raises(UserError, match="max-autotune"):
        plumbline.compile(torch.sin, mode="max-tune")


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_modes_change_no_answer(mode):
    """A `mode` is taken, no answer depends on it, and what has no effect says so."""
    x = torch.randn(5)
    with recording() as events:
        compiled = plumbline.compile(lambda x: x.sin() + 1, backend="aot_eager", mode=mode)
    told = [event.why for event in events if isinstance(event, FellBack) and mode in event.operation]
    assert [text.partition(":")[0] for text in told] == ([] if mode == "default" else ["no effect"])
    assert torch.equal(compiled(x), x.sin() + 1)
