"""The public functions of the compiler behave as the FAQ says."""

import copy
import inspect
import pickle
import threading

import pytest
import torch
from torch import nn

from plumbline.compiler import api, backends, controls, dimension_marks, profiling
from plumbline.compiler.base.errors import Unsupported, UserError
from plumbline.compiler.base.events import Captured, CompilerFailed, Recompiled, recording
from plumbline.compiler.base.options import Options

STRICT = Options(strict=True)


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    print("woo")
    if b.sum() < 0:
        b = b * -1
    return x * b


def counted(function, **settings):
    graphs = []

    def backend(graph, inputs):
        graphs.append((graph, inputs))
        return graph.forward

    return api.compile(function, backend=backend, options=STRICT, **settings), graphs


def test_explain_tells_graphs_breaks_and_lines():
    story, guards, graphs, operations = api.explain(toy_example, torch.randn(10), torch.ones(10))
    assert story.graph_count == 3
    assert story.graph_break_count == 2
    assert story.op_count == 6
    assert [reason.reason for reason in story.break_reasons] == ["side-effect-call", "data-dependent-branch"]
    text = str(story)
    assert text.startswith("plumbline produced 3 graphs, with 2 graph breaks and 6 ops.")
    assert 'print("woo")' in text
    assert "in toy_example" in text
    assert len(graphs) == len(operations) == 3
    assert any("a is a tensor" in guard for guard in guards)


def test_explain_in_two_steps():
    assert api.explain(lambda x: x + 1)(torch.ones(2)).graph_count == 1


def test_full_graph_raises_with_the_users_line():
    run = api.compile(toy_example, backend="eager", fullgraph=True)
    line = inspect.getsourcelines(toy_example)[1] + 2
    with pytest.raises(Unsupported, match=rf"test_api.py:{line}: the full graph of toy_example breaks: print"):
        run(torch.ones(2), torch.ones(2))
    with pytest.raises(Unsupported):
        api.compile(toy_example, backend="eager", nopython=True)(torch.ones(2), torch.ones(2))


def test_signature_name_and_docs_are_kept():
    def f(a, /, b: int = 2, *rest, key=3, **others) -> int:
        """Doc."""
        return (a, b, rest, key, others)

    run = api.compile(f, backend="eager")
    assert inspect.signature(run) == inspect.signature(f)
    assert (run.__name__, run.__doc__, run.__module__) == (f.__name__, f.__doc__, f.__module__)
    assert run(1) == f(1)
    assert run(1, 2, 3, key=4, z=5) == f(1, 2, 3, key=4, z=5)
    with pytest.raises(TypeError):
        run()


def test_decorator_with_and_without_arguments():
    @api.compile(backend="eager")
    def f(x):
        return x + 1

    @api.compile
    def g(x):
        return x * 2

    assert torch.equal(f(torch.ones(2)), torch.full((2,), 2.0))
    assert torch.equal(g(torch.ones(2)), torch.full((2,), 2.0))


@pytest.mark.parametrize("settings", [{"backend": "nope"}, {"mode": "nope"}, {"options": {"nope": 1}}, {"backend": 3}])
def test_unknown_settings_are_one_line_errors(settings):
    with pytest.raises(UserError) as caught:
        api.compile(toy_example, **settings)
    assert "\n" not in str(caught.value)
    assert "one of" in str(caught.value) or "list_backends" in str(caught.value)


def test_what_cannot_be_compiled_is_refused():
    with pytest.raises(UserError):
        api.compile(3, backend="eager")


def test_run_uses_what_is_compiled_and_compiles_nothing():
    run, graphs = counted(lambda x: x + 1)
    frozen = api.run(run)
    assert torch.equal(frozen(torch.ones(2)), torch.full((2,), 2.0))
    assert not graphs
    run(torch.ones(2))
    frozen(torch.ones(2))
    frozen(torch.ones(3))
    assert len(graphs) == 1


def test_reset_forgets():
    run, graphs = counted(lambda x: x + 1)
    run(torch.ones(2))
    api.reset()
    run(torch.ones(2))
    assert len(graphs) == 2


def test_recompile_limit_ends_in_eager():
    run, graphs = counted(lambda x, word: x * len(word), recompile_limit=3)
    for length in range(6):
        assert torch.equal(run(torch.ones(2), "a" * length), torch.ones(2) * length)
    assert len(graphs) == 3


def test_user_backend_gets_graph_and_real_inputs():
    run, graphs = counted(lambda x, y: x @ y + 1)
    x, y = torch.randn(2, 3), torch.randn(3, 2)
    run(x, y)
    graph, inputs = graphs[0]
    assert isinstance(graph, torch.fx.GraphModule)
    assert inputs[0] is x
    assert torch.equal(graph(*inputs)[0], x @ y + 1)


def test_error_of_a_user_backend_reaches_the_user():
    def backend(graph, inputs):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        api.compile(lambda x: x + 1, backend=backend)(torch.ones(2))


def test_register_backend(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backends, "_USERS", {})  # for this test alone

    @backends.register_backend
    def my_backend(graph, inputs):
        return graph.forward

    assert "my_backend" in backends.list_backends()
    assert {"eager", "aot_eager", "inductor"} <= set(backends.list_backends())
    assert torch.equal(api.compile(lambda x: x + 1, backend="my_backend")(torch.ones(1)), torch.full((1,), 2.0))
    with pytest.raises(UserError):
        backends.register_backend(my_backend)


def test_is_compiling_differs_inside():
    def f(x):
        return x + (1 if controls.is_compiling() and torch.compiler.is_compiling() else 2)

    assert controls.is_compiling() is False
    assert api.compile(f, backend="eager")(torch.zeros(1)).item() == 1
    assert f(torch.zeros(1)).item() == 2


def test_graph_break_breaks():
    def f(x):
        y = x + 1
        controls.graph_break()
        return y * 2

    assert api.explain(f, torch.ones(2)).graph_count == 2


def test_disable_and_its_call_stack_example():
    seen = []

    def aa_fn(x):
        return x + 1

    def ab_fn(x):
        return x * 2

    def a_fn(x):
        return ab_fn(aa_fn(x))

    def b_fn(x):
        return x - 1

    def names(run_a):
        def fn(x):
            return b_fn(run_a(x))

        api.reset()  # the code is the same each time
        with recording() as events:
            result = api.compile(fn, backend="eager", options=STRICT)(torch.ones(2))
        assert torch.equal(result, b_fn(a_fn(torch.ones(2))))
        seen.append(sorted(e.function for e in events if isinstance(e, Captured)))
        return seen[-1]

    assert names(a_fn) == ["fn"]
    assert names(controls.disable(a_fn)) == ["fn"]
    assert names(controls.disable(a_fn, recursive=False)) == ["aa_fn", "ab_fn", "fn"]


def test_torch_marks_are_honoured():
    @torch.compiler.disable
    def quiet(x):
        return x + 1

    story = api.explain(lambda x: quiet(x * 2) * 3, torch.ones(2))
    assert story.graph_count == 2
    assert story.break_reasons[0].reason == "disabled"


def test_allow_and_disallow_in_graph():
    def opaque(x):
        return x + 1 if x.dim() else x

    def f(x):
        return opaque(x) * 2

    controls.allow_in_graph(opaque)
    story = api.explain(f, torch.ones(2))
    assert opaque in story.ops_per_graph[0]
    controls.disallow_in_graph(opaque)
    assert api.explain(f, torch.ones(2)).graph_break_count == 1
    controls.disallow_in_graph(torch.sin)
    try:
        assert api.explain(lambda x: (x + 1).cos() + torch.sin(x), torch.ones(2)).graph_break_count == 1
    finally:
        controls.allow_in_graph(torch.sin)


def test_profiler_reports_breaks_and_recompilations():
    with profiling.CompileProfiler() as prof:
        run = api.compile(toy_example, backend=prof)
        run(torch.ones(3), torch.ones(3))
        assert "No recompilation detected." in prof.report()
        run(torch.ones(4), torch.ones(4))
    report = prof.report()
    assert "toy_example was recompiled" in report
    assert 'print("woo")' in report
    assert prof.frame_count >= 3


def test_compile_times_lists_stages():
    api.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert "capture" in profiling.compile_times()


def test_skip_is_spelled_out():
    with pytest.raises(UserError, match="disable"):
        controls.skip(toy_example)


def test_mark_dynamic_checks_the_dimension():
    with pytest.raises(UserError):
        dimension_marks.mark_dynamic(torch.ones(2), 3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.register_buffer("calls", torch.zeros(()))
        self.scale = 2.0

    def forward(self, x):
        self.calls += 1
        return self.first(x).relu() * self.scale

    def extra(self, x):
        return x + 1


def test_compiled_module_is_the_module():
    net = Net()
    run = api.compile(net, backend="eager", options=STRICT)
    x = torch.randn(2, 3)
    expected = copy.deepcopy(net)(x)
    assert torch.equal(run(x), expected)
    assert net.calls.item() == 1
    assert isinstance(run, nn.Module)
    assert list(run.state_dict()) == list(net.state_dict())
    assert [n for n, _ in run.named_parameters()] == [n for n, _ in net.named_parameters()]
    run.scale = 3.0
    assert net.scale == 3.0
    assert torch.equal(run(x), net.first(x).relu() * 3.0)
    assert torch.equal(run.extra(x), x + 1)
    run.eval()
    assert not net.training
    run.double()
    assert net.first.weight.dtype == torch.float64
    net.load_state_dict({f"_orig_mod.{k}": v for k, v in net.state_dict().items()}, strict=False)
    run.load_state_dict({f"_orig_mod.{k}": torch.zeros_like(v) for k, v in net.state_dict().items()})
    assert net.first.weight.abs().max() == 0
    assert isinstance(pickle.loads(pickle.dumps(run)), Net)


def test_hooks_of_a_compiled_module_run():
    net = nn.Linear(2, 2)
    seen = []
    net.register_forward_hook(lambda module, args, output: output + 1)
    net.register_forward_pre_hook(lambda module, args: seen.append(len(args)))
    run = api.compile(net, backend="eager", options=STRICT)
    x = torch.ones(1, 2)
    assert torch.equal(run(x), net(x))
    assert seen == [1, 1]


def test_module_inside_compiled_function_and_training_flag():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    run, graphs = counted(lambda x: net(x) * 2)
    x = torch.ones(4, 2)
    run(x)
    net.eval()
    assert torch.equal(run(x), net(x) * 2)
    assert len(graphs) == 2


def test_an_error_of_ours_does_not_reach_the_user(monkeypatch):
    from plumbline.compiler.frontend.context import graph_builder

    def broken(*args, **kwargs):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(graph_builder.GraphBuilder, "call", broken)

    def f(x):
        try:
            return x.sin() + 1
        except ZeroDivisionError:
            return None

    with recording() as events:
        result = api.compile(f, backend="eager")(torch.ones(2))
    assert torch.equal(result, torch.ones(2).sin() + 1)
    assert [e.error for e in events if isinstance(e, CompilerFailed)] == ["ZeroDivisionError: ours"]
    with pytest.raises(ZeroDivisionError):
        api.compile(f, backend="eager", options=STRICT)(torch.ones(2))


def test_two_threads_share_one_compiled_function():
    run, _ = counted(lambda x, k: (x * k).sum())
    wrong = []

    def work(seed):
        for k in range(6):
            x = torch.full((3,), float(seed))
            if run(x, k).item() != 3.0 * seed * k:
                wrong.append((seed, k))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_recompile_record_names_guard_and_value():
    run, _ = counted(lambda x, k: x * k)
    run(torch.ones(2), 2)
    with recording() as events:
        run(torch.ones(2), 3)
    found = [e for e in events if isinstance(e, Recompiled)]
    assert found[0].guard == "k equals 2"
    assert found[0].actual == "3"


def test_default_of_the_function_can_change():
    def f(x, k=2):
        return x * k

    run = api.compile(f, backend="eager")
    assert run(torch.ones(1)).item() == 2
    assert run(torch.ones(1), 5).item() == 5


def test_methods_and_callable_objects():
    class Scale:
        def __init__(self, k):
            self.k = k

        def __call__(self, x):
            return x * self.k

        def plus(self, x):
            return x + self.k

    scale = Scale(3)
    assert torch.equal(api.compile(scale, backend="eager")(torch.ones(2)), torch.full((2,), 3.0))
    plus = api.compile(scale.plus, backend="eager")
    assert torch.equal(plus(torch.ones(2)), torch.full((2,), 4.0))
    scale.k = 5
    assert torch.equal(plus(torch.ones(2)), torch.full((2,), 6.0))


@pytest.mark.cc
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_every_named_backend_gives_values_and_gradients(backend):
    net = Net()
    run = api.compile(net, backend=backend)
    x = torch.randn(2, 3, requires_grad=True)
    run(x).sum().backward()
    found, x.grad = x.grad, None
    net(x).sum().backward()
    torch.testing.assert_close(found, x.grad)


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_apply_of_a_users_autograd_function_can_be_compiled(backend):
    compiled = api.compile(_Doubled.apply, backend=backend, fullgraph=True)
    x = torch.ones(3, requires_grad=True)
    y = compiled(x)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([2, 2, 2], [3, 3, 3])
