"""Examples of the FAQ on slow compilation, production, speed and wrong answers, as printed in its two editions."""

import inspect
import os
import subprocess
import sys
import textwrap

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import UnknownOption
from plumbline.compiler.base.events import Broke, Captured, Recompiled, recording


@pytest.fixture(autouse=True)
def fresh():
    plumbline.reset()


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    print("woo")
    if b.sum() < 0:
        b = b * -1
    return x * b


def watched(run, *args):
    """Return the result, the names of the functions that became graphs, and the reasons of breaks."""
    with recording() as events:
        result = run(*args)
    graphs = [event.function for event in events if isinstance(event, Captured)]
    return result, graphs, [event.reason for event in events if isinstance(event, Broke)]


def run_script(text, *, cwd, **environment):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PLUMBLINE_", "TORCHDYNAMO_"))}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        env={**kept, **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )


# --- Why is compilation slow? -------------------------------------------------------------------------------------


def test_slow_compile_times_is_a_string_by_default():
    """`compile_times()` gives the seconds of each stage, as text by default."""
    plumbline.compile(toy_example, backend="eager")(torch.randn(3), torch.randn(3))
    assert isinstance(plumbline.compile_times(), str)
    assert "capture" in plumbline.compile_times()


def test_slow_debug_variable_writes_output_code_and_ir(tmp_path):
    """TORCH_COMPILE_DEBUG=1 writes what every stage made."""
    program = """
        import torch, plumbline
        plumbline.compile(lambda x: x.sin() + 1, backend="aot_eager")(torch.ones(3))
    """
    run_script(program, cwd=tmp_path, TORCH_COMPILE_DEBUG="1")
    (page,) = (tmp_path / "plumbline_debug").glob("*/001-*/README.md")
    assert "aten_joint.py" in page.read_text(encoding="utf-8")


def test_slow_recompilation_profiler():
    """The example: CompileProfiler as the backend, and its report."""

    def my_model():
        return torch.ones(3) * len(state)

    state = []
    with plumbline.CompileProfiler() as prof:
        profiler_model = plumbline.compile(my_model, backend=prof)
        profiler_model()
        assert "No recompilation detected." in prof.report()
        state.append(1)
        profiler_model()
        report = prof.report()
    assert "my_model was recompiled" in report
    assert "state" in report


def test_slow_up_to_the_limit_then_eager():
    """Beyond the limit of recompilations a function runs eagerly."""
    with plumbline.config.patch(recompile_limit=2), recording() as events:
        run = plumbline.compile(lambda x, word: x * len(word), backend="eager")
        for word in ("", "a", "bb", "ccc"):
            assert run(torch.ones(1), word).item() == len(word)
    assert sum(isinstance(event, Captured) for event in events) == 2


# --- Why are you recompiling in production? -----------------------------------------------------------------------


def test_production_run_uses_what_was_compiled_of_the_plain_function(capsys):
    """The example: `run(toy_example)` uses what was compiled before, and compiles nothing."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)

        def counted(*args):
            calls.append(1)
            return graph.forward(*args)

        return counted

    calls = []
    frozen_toy_example = plumbline.run(toy_example)
    a, b = torch.randn(10), torch.rand(10)
    assert torch.equal(frozen_toy_example(a, b), toy_example(a, b))
    assert not graphs
    compiled = plumbline.compile(toy_example, backend=backend)
    compiled(a, b)
    made, before = len(graphs), len(calls)
    assert torch.equal(frozen_toy_example(a, b), toy_example(a, b))
    assert (len(graphs), len(calls)) == (made, before + made)
    assert torch.equal(frozen_toy_example(a.double(), b.double()), toy_example(a.double(), b.double()))
    assert len(graphs) == made
    assert compiled(a, b).shape == (10,)


def test_production_run_of_a_module():
    """`run` of a module does the same."""
    model = torch.nn.Linear(3, 2)
    compiled = plumbline.compile(model, backend="eager")
    x = torch.randn(4, 3)
    for frozen in (plumbline.run(model), plumbline.run(compiled)):
        assert torch.equal(frozen(x), model(x))
        assert list(frozen.state_dict()) == ["weight", "bias"]
        _, graphs, _ = watched(frozen, x)
        assert not graphs


# --- Why am I not seeing speedups? --------------------------------------------------------------------------------


def test_speedups_some_fun_is_one_graph():
    """Operations on tensors in a function are one graph, where all can be captured."""

    def some_fun(x):
        return torch.relu(x * 2 + 1).sum()

    _, graphs, breaks = watched(plumbline.compile(some_fun, backend="eager"), torch.ones(3))
    assert (graphs, breaks) == (["some_fun"], [])


def test_speedups_explain_unpacks_into_four_and_prints(capsys):
    """The example of the first edition: what `explain` prints, with the line of each break."""
    explanation, out_guards, graphs, ops_per_graph = plumbline.explain(toy_example, torch.randn(10), torch.rand(10))
    assert capsys.readouterr().out == "woo\n"
    print(explanation)
    printed = capsys.readouterr().out.splitlines()
    first = inspect.getsourcelines(toy_example)[1]
    assert printed[0] == "plumbline produced 3 graphs, with 2 graph breaks and 6 ops."
    assert printed[1] == " Break reasons:"
    assert printed[2].startswith("1. side-effect-call: ")
    assert printed[3].strip().endswith(f'test_examples.py", line {first + 2}, in toy_example')
    assert printed[4].strip() == 'print("woo")'
    assert any(line.startswith("2. data-dependent-branch: ") for line in printed)
    assert any(line.strip() == "if b.sum() < 0:" for line in printed)
    assert out_guards
    assert len(graphs) == len(ops_per_graph) == 3


def test_speedups_explanation_has_compile_times_and_no_errors():
    """The explanation has the seconds of the stages, too."""
    explanation = plumbline.explain(toy_example)(torch.randn(10), torch.randn(10))
    assert {"capture"} <= {stage for stage, _ in explanation.compile_times}
    assert all(seconds >= 0 for _, seconds in explanation.compile_times)
    assert explanation.errors == ()


def test_speedups_each_guard_has_the_line_that_needs_it():
    """Each guard that `explain` lists has the line that made it necessary."""
    explanation = plumbline.explain(toy_example)(torch.randn(10), torch.rand(10))
    first = inspect.getsourcelines(toy_example)[1]
    by_guard = dict(zip(explanation.out_guards, explanation.guard_places, strict=True))
    (guard,) = [words for words in by_guard if words.startswith("a is a tensor")]
    assert by_guard[guard].endswith(f"test_examples.py:{first + 1}")


def test_speedups_fullgraph_raises_on_the_first_break():
    """The example: `fullgraph=True` raises at the first break, with its line."""
    from plumbline.compiler.base.errors import Unsupported

    line = inspect.getsourcelines(toy_example)[1] + 2
    with pytest.raises(Unsupported, match=f"test_examples.py:{line}: .*print"):
        plumbline.compile(toy_example, fullgraph=True, backend="eager")(torch.randn(10), torch.randn(10))


# --- Why didn't my code recompile when I changed it? --------------------------------------------------------------


@pytest.mark.parametrize(("setting", "graphs"), [("1", "1"), ("0", "4")])
def test_changed_dynamic_shapes_variable(setting, graphs, tmp_path):
    """TORCHDYNAMO_DYNAMIC_SHAPES=1: other sizes need no further compilation; 0: each size does."""
    program = """
        import torch, plumbline
        made = []
        run = plumbline.compile(lambda x: x * 2 + 1, backend=lambda graph, _: made.append(graph) or graph.forward)
        for size in (3, 5, 9, 16):
            run(torch.ones(size))
        print(len(made))
    """
    assert run_script(program, cwd=tmp_path, TORCHDYNAMO_DYNAMIC_SHAPES=setting).stdout.split() == [graphs]


def test_changed_only_the_graph_that_changed_is_compiled_again():
    """Only the graph that a change concerns is compiled again."""

    def program(x, first, second):
        y = x * first
        plumbline.graph_break()
        return y * second

    run = plumbline.compile(program, backend="eager")
    _, graphs, _ = watched(run, torch.ones(2), 2, 3)
    assert len(graphs) == 2
    with recording() as events:
        assert run(torch.ones(2), 2, 4)[0].item() == 8
    assert sum(isinstance(event, Captured) for event in events) == 1
    assert sum(isinstance(event, Recompiled) for event in events) == 1


# --- Why am I getting incorrect results, and OOMs -----------------------------------------------------------------


def test_incorrect_results_random_numbers_are_those_of_eager():
    """Random numbers are those of eager execution."""

    def program(x):
        return torch.nn.functional.dropout(x, 0.5) + torch.rand(8)

    for backend in ("eager", "aot_eager"):
        torch.manual_seed(3)
        expected, state = program(torch.ones(8)), torch.get_rng_state()
        torch.manual_seed(3)
        assert torch.equal(plumbline.compile(program, backend=backend)(torch.ones(8)), expected)
        assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", ["specialize_int", "log_level", "automatic_dynamic_shapes"])
def test_settings_that_mean_something_else_here_say_what_to_do(name):
    """Settings that have another form here say which."""
    with pytest.raises(UnknownOption) as caught:
        setattr(plumbline.config, name, True)
    assert len(caught.value.hint) > 20
    assert "\n" not in str(caught.value)
