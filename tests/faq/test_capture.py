"""The capture side of the torch.compile FAQ and of the fine-grained tracing page, as a user would paste it."""

import inspect
import os
import subprocess
import sys
import textwrap
import time

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import Unsupported, UserError
from plumbline.compiler.base.events import Broke, Captured, recording


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    print("woo")
    if b.sum() < 0:
        b = b * -1
    return x * b


@pytest.fixture(autouse=True)
def fresh():
    plumbline.reset()


def compiled_names(run, *args):
    """Return the result and the functions whose code became graphs."""
    with recording() as events:
        result = run(*args)
    return result, sorted({event.function for event in events if isinstance(event, Captured)})


# --- does it support training -----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_forward_and_optimizer_step_are_compiled_and_backward_is_called_by_the_user(backend):
    """Forward and `optimizer.step()` are captured; the user calls `backward()`."""

    def losses(decorate):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        forward, step = decorate(lambda x: model(x).pow(2).mean()), decorate(optimizer.step)
        seen = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = forward(torch.ones(5, 4))
            loss.backward()
            step()
            seen.append(loss.item())
        return seen

    assert losses(lambda f: plumbline.compile(f, backend=backend)) == pytest.approx(losses(lambda f: f), rel=1e-6)


# --- do you need whole graphs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", ["fullgraph", "nopython"])
def test_whole_graph_or_an_error_with_the_users_line(whole):
    line = inspect.getsourcelines(toy_example)[1] + 2
    with pytest.raises(Unsupported, match=rf"{os.path.basename(__file__)}:{line}: .*print") as caught:
        plumbline.compile(toy_example, backend="eager", **{whole: True})(torch.randn(10), torch.randn(10))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("whole", ["fullgraph", "nopython"])
def test_whole_graph_of_a_function_that_has_one(whole):
    run = plumbline.compile(lambda a: torch.sin(a) + 1, backend="eager", **{whole: True})
    assert torch.equal(run(torch.ones(3)), torch.sin(torch.ones(3)) + 1)


# --- why is my code crashing: the three backends ------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
def test_each_backend_runs_the_example(backend, capsys):
    """The three steps: each of the backends runs the example."""
    a, b = torch.randn(10), -torch.rand(10)
    expected = toy_example(a, b)
    torch.testing.assert_close(plumbline.compile(toy_example, backend=backend)(a, b), expected)
    assert capsys.readouterr().out == "woo\nwoo\n"


@pytest.mark.parametrize("mode", [None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_modes_are_accepted(mode):
    run = plumbline.compile(torch.sin, backend="eager", mode=mode)
    assert torch.equal(run(torch.ones(2)), torch.sin(torch.ones(2)))


def test_options_are_fields_of_options_and_others_are_refused():
    run = plumbline.compile(lambda x: x + 1, backend="eager", options={"recompile_limit": 2})
    assert torch.equal(run(torch.ones(2)), torch.full((2,), 2.0))
    with pytest.raises(UserError, match="recompile_limit"):
        plumbline.compile(lambda x: x, backend="eager", options={"recompile_limits": 2})


# --- why is compilation slow --------------------------------------------------------------------------------------


def test_compile_times_is_text_by_stage():
    plumbline.compile(toy_example, backend="eager")(torch.randn(10), torch.randn(10))
    times = plumbline.compile_times()
    assert isinstance(times, str)
    assert any(line.startswith("capture") and float(line.split()[2]) >= 0 for line in times.splitlines())
    plumbline.reset()
    assert "capture" not in plumbline.compile_times()


def test_profiler_names_breaks_and_the_guard_that_failed():
    def my_model(x, n):
        y = x * n
        print("woo")
        return y + 1

    with plumbline.CompileProfiler() as prof:
        profiler_model = plumbline.compile(my_model, backend=prof)
        for n in (1, 2, 3):
            profiler_model(torch.ones(2), n)
        report = prof.report()
    assert 'print("woo")' in report
    assert "my_model was recompiled" in report
    assert "n equals 1" in report
    assert os.path.basename(__file__) in report


def test_profiler_of_a_program_without_surprises():
    with plumbline.CompileProfiler() as prof:
        run = plumbline.compile(lambda x: x + 1, backend=prof)
        run(torch.ones(2))
        run(torch.zeros(2))
    assert "1 graph, with 0 graph breaks" in prof.report()
    assert "No recompilation detected." in prof.report()


# --- why are you recompiling in production ------------------------------------------------------------------------


def test_frozen_function_uses_what_is_compiled_and_falls_back_to_eager():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled_toy = plumbline.compile(toy_example, backend=backend)
    frozen_toy_example = plumbline.run(compiled_toy)
    a, b = torch.randn(10), torch.rand(10)
    assert torch.equal(frozen_toy_example(a, b), toy_example(a, b))
    assert not graphs
    compiled_toy(a, b)
    made = len(graphs)
    assert torch.equal(frozen_toy_example(a, b), toy_example(a, b))
    assert torch.equal(
        frozen_toy_example(torch.ones(3, 2), -torch.ones(3, 2)), toy_example(torch.ones(3, 2), -torch.ones(3, 2))
    )
    assert len(graphs) == made


# --- identifying the cause of a graph break -----------------------------------------------------------------------


def test_explanation_prints_as_in_the_faq():
    first = inspect.getsourcelines(toy_example)[1]
    explanation, _, _, _ = plumbline.explain(toy_example, torch.randn(10), torch.rand(10))
    lines = str(explanation).splitlines()
    assert lines[0] == "plumbline produced 3 graphs, with 2 graph breaks and 6 ops."
    assert lines[1] == " Break reasons:"
    numbered = [line for line in lines if line[:2] in ("1.", "2.", "3.")]
    assert [line.partition(":")[0] for line in numbered] == ["1. side-effect-call", "2. data-dependent-branch"]
    text = str(explanation)
    assert f'{os.path.basename(__file__)}", line {first + 2}, in toy_example' in text
    assert f'{os.path.basename(__file__)}", line {first + 3}, in toy_example' in text
    assert 'print("woo")' in text
    assert "if b.sum() < 0:" in text


def test_explanation_is_an_object_too():
    explanation, out_guards, graphs, ops_per_graph = plumbline.explain(toy_example)(torch.randn(10), torch.rand(10))
    assert (explanation.graph_count, explanation.graph_break_count, explanation.op_count) == (3, 2, 6)
    assert all(isinstance(graph, torch.fx.GraphModule) for graph in graphs)
    assert [len(ops) for ops in ops_per_graph] == [3, 2, 1]
    assert torch.abs in ops_per_graph[0]
    assert out_guards
    assert [reason.origin.function for reason in explanation.break_reasons] == ["toy_example"] * 2


# --- fine-grained tracing -----------------------------------------------------------------------------------------


def aa_fn(x):
    return x + 1


def ab_fn(x):
    return x * 2


def a_fn(x):
    return ab_fn(aa_fn(x))


def b_fn(x):
    return x - 1


def frames_of(a):
    def fn(x):
        return b_fn(a(x))

    return fn


@pytest.mark.parametrize(
    ("mark", "captured"),
    [
        (lambda f: f, ["fn"]),
        (plumbline.disable, ["fn"]),
        (lambda f: plumbline.disable(f, recursive=True), ["fn"]),
        (lambda f: plumbline.disable(f, recursive=False), ["aa_fn", "ab_fn", "fn"]),
        (torch.compiler.disable, ["fn"]),
        (lambda f: torch.compiler.disable(f, recursive=False), ["aa_fn", "ab_fn", "fn"]),
    ],
    ids=["none", "disable", "recursive", "not_recursive", "torch_disable", "torch_not_recursive"],
)
def test_call_stack_example(mark, captured):
    result, names = compiled_names(plumbline.compile(frames_of(mark(a_fn)), backend="eager"), torch.ones(2))
    assert torch.equal(result, torch.full((2,), 3.0))
    assert names == captured


def test_disable_as_a_decorator_in_its_three_forms():
    @plumbline.disable
    def first(x):
        return x + 1

    @plumbline.disable()
    def second(x):
        return x + 2

    @plumbline.disable(recursive=False)
    def third(x):
        return aa_fn(x)

    def fn(x):
        return third(second(first(x * 2)))

    result, names = compiled_names(plumbline.compile(fn, backend="eager"), torch.ones(2))
    assert torch.equal(result, torch.full((2,), 6.0))
    assert names == ["aa_fn", "fn"]


def test_disabled_function_stays_what_it_was():
    quiet = plumbline.disable(toy_example)
    assert quiet.__name__ == "toy_example"
    assert inspect.signature(quiet) == inspect.signature(toy_example)


def test_skip_is_deprecated_and_says_what_to_use():
    with pytest.raises(UserError, match=r"disable\(recursive=False\)"):
        plumbline.skip(toy_example)


def test_graph_break_splits_and_does_nothing_outside():
    def fn(x):
        x = torch.sin(x)
        plumbline.graph_break()
        return torch.cos(x)

    plumbline.graph_break()
    with recording() as events:
        plumbline.compile(fn, backend="eager")(torch.ones(2))
    assert sum(isinstance(event, Captured) for event in events) == 2
    assert [event.reason for event in events if isinstance(event, Broke)] == ["explicit-break"]


def test_graph_break_at_the_start_keeps_a_function_from_being_inlined():
    def inner(x):
        plumbline.graph_break()
        return x + 1

    def fn(x):
        return inner(x * 2) * 3

    result, names = compiled_names(plumbline.compile(fn, backend="eager"), torch.ones(2))
    assert torch.equal(result, torch.full((2,), 9.0))
    assert names == ["fn", "inner"]


def test_disallowed_operator_runs_eagerly_until_it_is_allowed_again():
    def fn(a):
        x = torch.add(a, 1)
        x = torch.sub(x, 1)
        return torch.mul(x, 2)

    plumbline.disallow_in_graph(torch.sub)
    try:
        explanation, _, _, operations = plumbline.explain(fn, torch.ones(2))
        assert explanation.graph_break_count == 1
        assert [list(ops) for ops in operations] == [[torch.add], [torch.mul]]
        assert torch.equal(plumbline.compile(fn, backend="eager")(torch.ones(2)), fn(torch.ones(2)))
    finally:
        plumbline.allow_in_graph(torch.sub)
    assert plumbline.explain(fn, torch.ones(2)).graph_break_count == 0


def test_allowed_function_stands_in_the_graph_as_it_is():
    @plumbline.allow_in_graph
    def black_box(x):
        time.sleep(0)  # capture would break here
        return x + 1

    explanation, _, _, operations = plumbline.explain(lambda x: black_box(x * 2) * 3, torch.ones(2))
    assert explanation.graph_break_count == 0
    assert black_box in operations[0]


def test_escape_hatch_for_vmap():
    def fn(x):
        return plumbline.allow_in_graph(torch.vmap(torch.sum))(x)

    x = torch.randn(2, 3)
    assert torch.equal(plumbline.compile(fn, backend="eager")(x), fn(x))


def test_questions_about_compilation():
    def fn(x):
        flags = (plumbline.is_compiling(), plumbline.is_dynamo_compiling(), torch.compiler.is_compiling())
        return x + 1, flags

    assert fn(torch.ones(2))[1] == (False, False, False)
    assert plumbline.compile(fn, backend="eager")(torch.ones(2))[1] == (True, True, True)
    assert fn(torch.ones(2))[1] == (False, False, False)


# --- custom backends ----------------------------------------------------------------------------------------------


def test_custom_backend_takes_graph_and_example_inputs():
    seen = []

    def my_compiler(gm, example_inputs):
        seen.append((gm, [tuple(x.shape) for x in example_inputs]))
        gm.graph.print_tabular if False else gm.graph.lint()
        return gm.forward

    @plumbline.compile(backend=my_compiler)
    def fn(x, y):
        a = torch.cos(x)
        b = torch.sin(y)
        return a + b

    x, y = torch.randn(10), torch.randn(10)
    assert torch.equal(fn(x, y), torch.cos(x) + torch.sin(y))
    assert isinstance(seen[0][0], torch.fx.GraphModule)
    assert seen[0][1] == [(10,), (10,)]


def test_custom_backend_decides_the_answer():
    def wrong(gm, example_inputs):
        return lambda *inputs: tuple(value + 1 for value in gm.forward(*inputs))

    run = plumbline.compile(lambda x: x * 2, backend=wrong)
    assert torch.equal(run(torch.ones(2)), torch.full((2,), 3.0))


# --- settings from the environment --------------------------------------------------------------------------------


@pytest.mark.parametrize(("setting", "graphs"), [("0", 3), ("1", 1), (None, 2)])
def test_dynamic_shapes_setting_of_the_environment(setting, graphs):
    program = textwrap.dedent("""
        import plumbline, torch
        graphs = []
        def backend(graph, inputs):
            graphs.append(graph)
            return graph.forward
        run = plumbline.compile(lambda x: x + 1, backend=backend)
        for size in (4, 5, 6):
            run(torch.ones(size))
        print(len(graphs))
    """)
    environment = {name: value for name, value in os.environ.items() if name != "TORCHDYNAMO_DYNAMIC_SHAPES"}
    if setting is not None:
        environment["TORCHDYNAMO_DYNAMIC_SHAPES"] = setting
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split() == [str(graphs)]
