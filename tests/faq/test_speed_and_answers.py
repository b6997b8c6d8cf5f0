"""The FAQ on speed, recompilation, wrong answers and memory: what is fused, what breaks, what is compiled again."""

import runpy
import zlib

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Artifact, Broke, Captured, KernelBuilt, Recompiled, recording
from plumbline.testing import lowering_of, replace_lowering


@pytest.fixture(autouse=True)
def fresh():
    plumbline.reset()


def events_of(function, *args, **settings):
    with recording() as events:
        result = plumbline.compile(function, **settings)(*args)
    return result, events


def kernels(events):
    return sum(event.kernels for event in events if isinstance(event, KernelBuilt))


# --- how are you speeding up my code ------------------------------------------------------------------------------


@pytest.mark.cc
def test_operations_one_after_the_other_are_one_kernel():
    """Vertical fusion: two cosines, one after the other, are one kernel that reads once and writes once."""
    x = torch.randn(64, 64)
    result, events = events_of(lambda x: x.cos().cos(), x)
    assert kernels(events) == 1
    torch.testing.assert_close(result, x.cos().cos())
    (text,) = [event.text for event in events if isinstance(event, Artifact) and event.name == "host.py"]
    assert text.count("empty_strided(") == 1


@pytest.mark.cc
def test_operations_beside_each_other_are_one_kernel():
    """Horizontal fusion: results that read the same input are computed by one kernel."""
    _, events = events_of(lambda x: (x.sum(1), x.amax(1)), torch.randn(64, 64))
    assert kernels(events) == 1


@pytest.mark.cc
def test_memory_of_what_is_no_longer_read_is_used_again():
    """Looking ahead at what depends on what tells which memory can be used again."""
    x = torch.randn(256, 256)

    def chain(x):
        for _ in range(3):
            x = torch.softmax(torch.softmax(x, 0), 1)
        return x

    result, events = events_of(chain, x)
    torch.testing.assert_close(result, chain(x))
    (text,) = [event.text for event in events if isinstance(event, Artifact) and event.name == "host.py"]
    arena = int(text.partition("arena = empty(")[2].partition(",")[0])
    assert kernels(events) >= 4
    assert arena < 3 * x.nbytes  # of at least five values in between, most are in memory that others have left


@pytest.mark.cc
def test_generated_kernels_can_be_looked_at():
    """The generated kernels can be inspected."""
    _, events = events_of(lambda x: x.cos(), torch.randn(64))
    (text,) = [event.text for event in events if isinstance(event, Artifact) and event.name == "graph.c"]
    assert "cos" in text


# --- why am I not seeing speedups: graph breaks -------------------------------------------------------------------


def test_what_an_extension_in_c_does_is_not_captured():
    """A call into C that is not PyTorch's breaks the graph, and gives what it gives in Python."""

    def some_fun(x):
        y = x + 1
        return y * (zlib.crc32(y.numpy().tobytes()) % 7)

    x = torch.arange(3.0)
    result, events = events_of(some_fun, x, backend="eager")
    assert torch.equal(result, some_fun(x))
    assert [event for event in events if isinstance(event, Broke)]


def test_few_breaks_are_few_graphs():
    """Everything between two breaks is one graph."""

    def some_fun(x):
        for _ in range(2):
            x = x.sin()
            plumbline.graph_break()
        return x

    _, events = events_of(some_fun, torch.ones(2), backend="eager")
    assert sum(isinstance(event, Captured) for event in events) == 2


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    print("woo")
    if b.sum() < 0:
        b = b * -1
    return x * b


def test_explain_is_called_in_both_ways(capsys):
    """`explain(f, *args)` unpacks into four; `explain(f)(*args)` is an object with counts, reasons and guards."""
    a, b = torch.randn(10), torch.rand(10)
    explanation, out_guards, graphs, ops_per_graph = plumbline.explain(toy_example, a, b)
    report = plumbline.explain(toy_example)(a, b)
    assert capsys.readouterr().out == "woo\nwoo\n"
    assert str(explanation) == str(report)
    assert (report.graph_count, report.graph_break_count, report.op_count) == (3, 2, 6)
    assert [len(graphs), len(ops_per_graph), len(report.break_reasons)] == [3, 3, 2]
    assert list(report.out_guards) == list(out_guards)


# --- why didn't my code recompile ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 5, 6])
def test_sizes_within_a_factor_of_two_need_no_further_compilation(size):
    """With dynamic shapes a function is not compiled again where its sizes change by less than a factor of two."""
    run = plumbline.compile(lambda x: x * 2 + x.shape[0], backend="eager", dynamic=True)
    run(torch.ones(4))
    with recording() as events:
        assert torch.equal(run(torch.ones(size)), torch.full((size,), 2.0 + size))
    assert not [event for event in events if isinstance(event, Captured)]


def test_of_several_graphs_only_the_changed_one_is_compiled_again():
    """If a change concerns one of three graphs, only that one is compiled again."""

    def program(x, first, second, third):
        y = x * first
        plumbline.graph_break()
        y = y + second
        plumbline.graph_break()
        return y * third

    run = plumbline.compile(program, backend="eager")
    run(torch.ones(2), 2, 3, 4)
    with recording() as events:
        assert run(torch.ones(2), 2, 3, 7)[0].item() == 35
    assert [sum(isinstance(event, kind) for event in events) for kind in (Captured, Recompiled)] == [1, 1]


@pytest.mark.cc
def test_what_was_compiled_once_is_built_from_the_cache():
    """Warmed up once, later compilations are fast: kernels come from the cache."""

    def program(x):
        return (x.cos() * 3 + 1).sin()

    x = torch.randn(32)
    events_of(program, x)
    plumbline.reset()
    _, events = events_of(program, x)
    assert [event for event in events if isinstance(event, Artifact) and event.stage == "codegen"]
    assert not [event for event in events if isinstance(event, KernelBuilt) and not event.cached]


# --- wrong answers, and memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [True, False])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_random_numbers_are_eagers_whatever_fallback_random_says(backend, setting):
    """With `fallback_random` random numbers are PyTorch's; here they always are."""

    def program(x):
        return torch.nn.functional.dropout(x, 0.5) + torch.rand(8)

    torch.manual_seed(7)
    expected = program(torch.ones(8))
    torch.manual_seed(7)
    with plumbline.config.patch(fallback_random=setting):
        assert torch.equal(plumbline.compile(program, backend=backend)(torch.ones(8)), expected)


def test_dynamic_shapes_and_cuda_graphs_can_be_switched_off():
    """Against a lack of memory dynamic shapes and CUDA graphs can be switched off, in this order."""
    plumbline.config.triton.cudagraphs = False
    with plumbline.config.patch(dynamic_shapes=False), recording() as events:
        run = plumbline.compile(lambda x: x + 1, backend="eager")
        for size in (3, 4, 5):
            run(torch.ones(size))
    assert sum(isinstance(event, Captured) for event in events) == 3


def asked_for(monkeypatch, place, **environment):
    """Set variables of the environment, and none of those of this test run; what is written lies below a folder."""
    monkeypatch.chdir(place)
    monkeypatch.delenv("PLUMBLINE_BUNDLE_DIRECTORY", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.cc
def test_wrong_answers_leave_a_script_that_shows_them(tmp_path, monkeypatch):
    """TORCHDYNAMO_REPRO_AFTER="aot" with TORCHDYNAMO_REPRO_LEVEL=4: a wrong graph is found, and written as a script."""
    aten, x = torch.ops.aten, torch.tensor([-1.0, 2.0])

    def f(x):
        return (x.exp() - 1).relu()

    with replace_lowering(aten.relu.default, lowering_of(aten.abs.default)):
        assert plumbline.compile(f)(x)[0] > 0.5
        plumbline.reset()
        asked_for(monkeypatch, tmp_path, TORCHDYNAMO_REPRO_AFTER="aot", TORCHDYNAMO_REPRO_LEVEL="4")
        with pytest.warns(UserWarning, match="reproduce it with: python ") as caught:
            assert plumbline.compile(f)(x)[0] == 0
    (script,) = (tmp_path / "plumbline_repro").glob("*/repro.py")
    assert str(script) in str(caught[0].message)
    assert "aten.relu" in (script.parent / "error.txt").read_text()


def failing_backend(graph, inputs):
    raise ValueError("planted")


def test_a_backend_that_fails_leaves_a_script_that_fails(tmp_path, monkeypatch):
    """TORCHDYNAMO_REPRO_AFTER="dynamo": a graph on which a backend fails is written as a script that fails alike."""
    asked_for(monkeypatch, tmp_path, TORCHDYNAMO_REPRO_AFTER="dynamo")
    with pytest.warns(UserWarning, match="planted"), pytest.raises(ValueError, match="planted"):
        plumbline.compile(lambda x: x.sin() + 1, backend=failing_backend)(torch.ones(2))
    (script,) = (tmp_path / "plumbline_repro").glob("*/repro.py")
    monkeypatch.delenv("TORCHDYNAMO_REPRO_AFTER")
    with pytest.raises(ValueError, match="planted"):
        runpy.run_path(str(script), run_name="__main__")


def test_without_the_variable_nothing_is_written(tmp_path, monkeypatch):
    """Nobody who has not asked gets a script for an error of a backend."""
    asked_for(monkeypatch, tmp_path)
    with pytest.raises(ValueError, match="planted"):
        plumbline.compile(lambda x: x.sin() + 1, backend=failing_backend)(torch.ones(2))
    assert not list(tmp_path.iterdir())
