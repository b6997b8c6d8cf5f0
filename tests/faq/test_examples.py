"""Every capture-side example of the FAQ (both editions) and of the fine-grained tracing page, one test each.

Names follow the documents: the question, then what the example shows.  What needs a GPU runs on the CPU here.
"""

import importlib
import inspect
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import UnknownOption, UserError
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
    plumbline.compile(toy_example, backend="eager")(torch.randn(3), torch.randn(3))
    assert isinstance(plumbline.compile_times(), str)
    assert "capture" in plumbline.compile_times()


def test_slow_debug_variable_writes_output_code_and_ir(tmp_path):
    program = """
        import torch, plumbline
        plumbline.compile(lambda x: x.sin() + 1, backend="aot_eager")(torch.ones(3))
    """
    run_script(program, cwd=tmp_path, TORCH_COMPILE_DEBUG="1")
    (page,) = (tmp_path / "plumbline_debug").glob("*/001-*/README.md")
    assert "aten_joint.py" in page.read_text(encoding="utf-8")


def test_slow_recompilation_profiler():
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
    with plumbline.config.patch(recompile_limit=2), recording() as events:
        run = plumbline.compile(lambda x, word: x * len(word), backend="eager")
        for word in ("", "a", "bb", "ccc"):
            assert run(torch.ones(1), word).item() == len(word)
    assert sum(isinstance(event, Captured) for event in events) == 2


# --- Why are you recompiling in production? -----------------------------------------------------------------------


def test_production_run_uses_what_was_compiled_of_the_plain_function(capsys):
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
    def some_fun(x):
        return torch.relu(x * 2 + 1).sum()

    _, graphs, breaks = watched(plumbline.compile(some_fun, backend="eager"), torch.ones(3))
    assert (graphs, breaks) == (["some_fun"], [])


def test_speedups_explain_unpacks_into_four_and_prints(capsys):
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
    explanation = plumbline.explain(toy_example)(torch.randn(10), torch.randn(10))
    assert {"capture"} <= {stage for stage, _ in explanation.compile_times}
    assert all(seconds >= 0 for _, seconds in explanation.compile_times)
    assert explanation.errors == ()


def test_speedups_each_guard_has_the_line_that_needs_it():
    explanation = plumbline.explain(toy_example)(torch.randn(10), torch.rand(10))
    first = inspect.getsourcelines(toy_example)[1]
    by_guard = dict(zip(explanation.out_guards, explanation.guard_places, strict=True))
    (guard,) = [words for words in by_guard if words.startswith("a is a tensor")]
    assert by_guard[guard].endswith(f"test_examples.py:{first + 1}")


def test_speedups_fullgraph_raises_on_the_first_break():
    from plumbline.compiler.base.errors import Unsupported

    line = inspect.getsourcelines(toy_example)[1] + 2
    with pytest.raises(Unsupported, match=f"test_examples.py:{line}: .*print"):
        plumbline.compile(toy_example, fullgraph=True, backend="eager")(torch.randn(10), torch.randn(10))


# --- Why didn't my code recompile when I changed it? --------------------------------------------------------------


@pytest.mark.parametrize(("setting", "graphs"), [("1", "1"), ("0", "4")])
def test_changed_dynamic_shapes_variable(setting, graphs, tmp_path):
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
    def program(x):
        return torch.nn.functional.dropout(x, 0.5) + torch.rand(8)

    for backend in ("eager", "aot_eager"):
        torch.manual_seed(3)
        expected, state = program(torch.ones(8)), torch.get_rng_state()
        torch.manual_seed(3)
        assert torch.equal(plumbline.compile(program, backend=backend)(torch.ones(8)), expected)
        assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", ["specialize_int", "log_level", "repro_level"])
def test_settings_that_mean_something_else_here_say_what_to_do(name):
    with pytest.raises(UnknownOption) as caught:
        setattr(plumbline.config, name, True)
    assert len(caught.value.hint) > 20
    assert "\n" not in str(caught.value)


# --- Does torch.func work? ----------------------------------------------------------------------------------------


def sine(x):
    return torch.sin(x)


def test_func_transform_of_a_compiled_function():
    compiled = plumbline.compile(sine, backend="eager")
    x = torch.randn(2, 3)
    assert torch.equal(torch.func.grad(lambda x: compiled(x).sum())(x), torch.cos(x))


def test_func_vmap_inside_a_compiled_function():
    @plumbline.compile(backend="eager", fullgraph=True)
    def g(x):
        return torch.vmap(sine)(x)

    x = torch.randn(2, 3)
    assert torch.equal(g(x), torch.sin(x))


def test_func_grad_of_a_lambda():
    def wrapper_fn(x):
        return torch.func.grad(lambda x: x.sin().sum())(x)

    x = torch.randn(3, 3, 3)
    assert torch.equal(plumbline.compile(wrapper_fn, backend="eager", fullgraph=True)(x), x.cos())


def test_func_vmap_of_a_lambda():
    def my_fn(x):
        return torch.vmap(lambda x: x.sum(1))(x)

    x = torch.randn(3, 3, 3)
    assert torch.equal(plumbline.compile(my_fn, backend="eager", fullgraph=True)(x), my_fn(x))


def test_func_limit_1_inputs_in_a_tuple():
    def fn(x):
        x1, x2 = x
        return x1 + x2

    def my_fn(x):
        return torch.func.vmap(fn)(x)

    pair = torch.randn(3, 3, 3), torch.randn(3, 3, 3)
    assert torch.equal(plumbline.compile(my_fn, backend="eager")(pair), my_fn(pair))


def test_func_limit_2_keyword_arguments():
    def fn(x, y):
        return (x + y).sum()

    def my_fn(x, y):
        return torch.func.grad(fn)(x, y=y)

    x, y = torch.randn(3, 3), torch.randn(3, 3)
    assert torch.equal(plumbline.compile(my_fn, backend="eager")(x, y), torch.ones(3, 3))


def test_func_limit_3_side_effects():
    some_list = []

    def f(x, y):
        some_list.append(1)
        return x + y

    def my_fn(x, y):
        return torch.func.vmap(f)(x, y)

    x, y = torch.ones(2, 3), torch.randn(2, 3)
    assert torch.equal(plumbline.compile(my_fn, backend="eager")(x, y), x + y)
    assert some_list == [1]


def test_func_limit_4_questions_about_layout():
    def bad_fn(x):
        x.stride()
        return x

    def my_fn(x):
        return torch.func.vmap(bad_fn)(x)

    x = torch.randn(3, 3, 3)
    assert torch.equal(plumbline.compile(my_fn, backend="eager")(x), x)


@pytest.mark.parametrize("mark", ["plumbline", "torch._dynamo", "torch.compiler"])
def test_func_escape_hatch_allow_in_graph(mark):
    module = importlib.import_module(mark)

    @plumbline.compile(backend="eager")
    def f(x):
        return module.allow_in_graph(torch.vmap(torch.sum))(x)

    x = torch.randn(2, 3)
    assert torch.equal(f(x), x.sum(1))


def test_func_escape_hatch_with_functional_call():
    model = torch.nn.Linear(3, 2)

    @plumbline.allow_in_graph
    def forward(parameters, x):
        return torch.func.functional_call(model, parameters, (x,))

    def f(x):
        return forward(dict(model.named_parameters()), x) * 2

    x = torch.randn(4, 3)
    assert torch.equal(plumbline.compile(f, backend="eager")(x), model(x) * 2)


# --- Does NumPy work? ---------------------------------------------------------------------------------------------


ANOTHER_ORDER = {"rtol": 1e-13, "atol": 1e-13}  # sums are rounded otherwise: docs/numpy.md


def numpy_fn(X, Y):  # noqa: N803 - as in the document
    return np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1))


def test_numpy_program_of_arrays():
    first, second = np.random.randn(16, 4), np.random.randn(16, 4)
    result = plumbline.compile(numpy_fn, backend="eager")(first, second)
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(result, numpy_fn(first, second), **ANOTHER_ORDER)


def test_numpy_program_under_a_device():
    first, second = np.random.randn(16, 4), np.random.randn(16, 4)
    with torch.device("cpu"):
        result = plumbline.compile(numpy_fn, backend="eager")(first, second)
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(result, numpy_fn(first, second), **ANOTHER_ORDER)


def test_numpy_program_of_tensors():
    def of_tensors(x, y):
        return torch.from_numpy(numpy_fn(x.numpy(), y.numpy()))

    x, y = torch.randn(16, 4), torch.randn(16, 4)
    torch.testing.assert_close(plumbline.compile(of_tensors, backend="eager")(x, y), of_tensors(x, y))


def test_numpy_wrap_numpy():
    wrapped = plumbline.compile(plumbline.wrap_numpy(numpy_fn), backend="eager")
    x, y = torch.randn(16, 4), torch.randn(16, 4)
    result = wrapped(x, y)
    assert isinstance(result, torch.Tensor)
    assert result.device == x.device
    torch.testing.assert_close(result, (x[:, :, None] * y[:, None, :]).sum((-2, -1)))
    assert plumbline.wrap_numpy(numpy_fn).__name__ == "numpy_fn"


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_numpy_wrap_numpy_differentiates(backend):
    def mean_of_products(x, y):
        return np.mean(np.sum(x[:, :, None] * y[:, None, :], axis=(-2, -1)))

    x, y = torch.randn(8, 4, requires_grad=True), torch.randn(8, 4)
    result = plumbline.compile(plumbline.wrap_numpy(mean_of_products), backend=backend, fullgraph=True)(x, y)
    assert isinstance(result, torch.Tensor)
    result.backward()
    expected = torch.autograd.grad((x[:, :, None] * y[:, None, :]).sum((-2, -1)).mean(), x)[0]
    torch.testing.assert_close(x.grad, expected)


def test_numpy_wrap_numpy_says_that_gradients_pass_no_break():
    with pytest.raises(UserError, match="gradients"):
        plumbline.wrap_numpy(numpy_fn)(torch.randn(2, 2, requires_grad=True), torch.randn(2, 2))


def test_numpy_break_between():
    def program(first, second):
        product = first[:, :, None] * second[:, None, :]
        print("oops, a graph break!")
        return np.sum(product, axis=(-2, -1))

    first, second = np.random.randn(16, 4), np.random.randn(16, 4)
    np.testing.assert_allclose(
        plumbline.compile(program, backend="eager")(first, second), numpy_fn(first, second), **ANOTHER_ORDER
    )


def test_numpy_in_terms_of_torch_for_debugging():
    tnp = importlib.import_module("torch._numpy")

    def program(x):
        return tnp.sum(tnp.asarray(x) * 2).tensor

    x = torch.randn(4)
    assert torch.equal(plumbline.compile(program, backend="eager")(x), program(x))


# --- Which API to use for fine-grained tracing? -------------------------------------------------------------------


def aa_fn(x):
    return x + 1


def ab_fn(x):
    return x * 2


def a_fn(x):
    return ab_fn(aa_fn(x))


def b_fn(x):
    return x - 1


def calling(first, second):
    def fn(x):
        return second(first(x))

    return plumbline.compile(fn, backend="eager")


def test_fine_grained_every_frame_is_captured_into_one_graph():
    result, graphs, breaks = watched(calling(a_fn, b_fn), torch.ones(2))
    assert torch.equal(result, torch.full((2,), 3.0))
    assert (graphs, breaks) == (["fn"], [])


@pytest.mark.parametrize("module", ["plumbline", "torch.compiler", "torch._dynamo"])
def test_fine_grained_disable_by_decorator(module):
    @importlib.import_module(module).disable
    def quiet(x):
        return a_fn(x)

    result, graphs, breaks = watched(calling(quiet, b_fn), torch.ones(2))
    assert torch.equal(result, torch.full((2,), 3.0))
    assert (set(graphs), breaks) == ({"fn"}, ["disabled"])


@pytest.mark.parametrize("module", ["plumbline", "torch.compiler", "torch._dynamo"])
def test_fine_grained_disable_without_decorator(module):
    quiet = importlib.import_module(module).disable(a_fn)
    result, graphs, _ = watched(calling(quiet, b_fn), torch.ones(2))
    assert torch.equal(result, torch.full((2,), 3.0))
    assert set(graphs) == {"fn"}
    assert torch.equal(watched(calling(a_fn, b_fn), torch.ones(2))[0], result)


@pytest.mark.parametrize("module", ["plumbline", "torch.compiler", "torch._dynamo"])
def test_fine_grained_call_stack_example(module):
    quiet = importlib.import_module(module).disable(a_fn, recursive=False)
    result, graphs, _ = watched(calling(quiet, b_fn), torch.ones(2))
    assert torch.equal(result, torch.full((2,), 3.0))
    assert sorted(set(graphs)) == ["aa_fn", "ab_fn", "fn"]


@pytest.mark.parametrize("module", ["plumbline", "torch._dynamo"])
def test_fine_grained_disallow_in_graph_and_back(module):
    marks = importlib.import_module(module)

    def program(a):
        return torch.mul(torch.sub(torch.add(a, 1), 1), 2)

    marks.disallow_in_graph(torch.sub)
    try:
        explanation = plumbline.explain(program, torch.ones(2))
        assert [list(targets) for targets in explanation.ops_per_graph] == [[torch.add], [torch.mul]]
        assert explanation.break_reasons[0].reason == "disabled"
    finally:
        marks.allow_in_graph(torch.sub)
    assert plumbline.explain(program, torch.ones(2)).graph_break_count == 0


@pytest.mark.parametrize("module", ["plumbline", "torch.compiler", "torch._dynamo"])
def test_fine_grained_allow_in_graph(module):
    @importlib.import_module(module).allow_in_graph
    def black_box(x):
        os.getcwd()  # capture would break here
        return x + 1

    explanation = plumbline.explain(lambda x: black_box(x * 2) * 3, torch.ones(2))
    assert explanation.graph_break_count == 0
    assert len(explanation.ops_per_graph[0]) == 3


@pytest.mark.parametrize("module", ["plumbline", "torch._dynamo"])
def test_fine_grained_graph_break(module):
    stop = importlib.import_module(module).graph_break

    def program(x):
        x = torch.sin(x)
        stop()
        return torch.cos(x)

    result, graphs, breaks = watched(plumbline.compile(program, backend="eager"), torch.ones(2))
    assert torch.equal(result, torch.cos(torch.sin(torch.ones(2))))
    assert (len(graphs), breaks) == (2, ["explicit-break"])


@pytest.mark.parametrize("module", ["plumbline", "torch.compiler"])
def test_fine_grained_is_compiling_and_is_dynamo_compiling(module):
    marks = importlib.import_module(module)

    def program(x):
        return x, marks.is_compiling(), marks.is_dynamo_compiling()

    assert program(1) == (1, False, False)
    assert plumbline.compile(program, backend="eager")(1) == (1, True, True)


def test_fine_grained_skip_is_deprecated():
    with pytest.raises(UserError, match=r"disable\(recursive=False\)"):
        plumbline.skip(a_fn)
