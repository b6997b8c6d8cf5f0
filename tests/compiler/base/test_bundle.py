"""An error of the compiler's own: the answer is right, nobody catches it, and a folder on disk tells about it."""

import dataclasses
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from unittest import mock

import pytest
import torch

import plumbline
from plumbline.compiler import backends, native
from plumbline.compiler.autograd.forms import backwards, traced_form
from plumbline.compiler.base.bundle import bundles
from plumbline.compiler.base.events import CompilerFailed, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.frontend import residual, specialise
from plumbline.compiler.frontend.context.graph_builder import GraphBuilder
from plumbline.compiler.frontend.guards import generated_function
from plumbline.compiler.frontend.units import unit


def program(x, k=2, *, scale: float = 1.5):
    try:
        y = torch.sin(x) * k
        return (y + scale).sum(1)
    except Exception:
        return "the error reached the program"


def named(x, name):
    return x.sin() if name == "nobody" else x.cos()


def planted(*_, **__):
    raise ZeroDivisionError("planted")


WRITE_HOST = native.write_host


def broken_kernels(*args, **settings):
    host = WRITE_HOST(*args, **settings)
    return dataclasses.replace(host, text="def run(*inputs):\n    raise ZeroDivisionError('planted')\n")


CAPTURED = {"error.txt", "function.py", "bytecode.txt", "guards.txt", "graph.py", "inputs.txt", "repro.py"}
COMPILED = {"error.txt", "function.py", "bytecode.txt", "guards.txt", "graph.py", "repro.py"}
GRAPH = {"error.txt", "graph.py", "repro.py"}

STAGES = {
    "an operation of the capture": ("eager", GraphBuilder, "call", planted, "capture", CAPTURED),
    "guards": ("eager", generated_function, "check_text", planted, "capture", CAPTURED),
    "the guarded function": ("eager", specialise, "guarded_function", planted, "capture", CAPTURED),
    "rebuilding values": ("eager", residual.Residual, "value", planted, "capture", CAPTURED),
    "tracing": ("aot_eager", traced_form, "trace_call", planted, "autograd", GRAPH),
    "passes": ("aot_eager", backwards, "run_passes", planted, "autograd", GRAPH),
    "the backend": ("aot_eager", backends, "compile_with_autograd", planted, "backend aot_eager", COMPILED),
    "lowering": ("inductor", native, "lower_graph", planted, "inductor", GRAPH),
    "code generation": ("inductor", native, "write_host", planted, "inductor", GRAPH),
    "run time of kernels": ("inductor", native, "write_host", broken_kernels, "compiled kernels", GRAPH),
    "run time of the graph": ("inductor", native, "bind", lambda *_, **__: planted, "compiled code", COMPILED),
}
NEEDS_A_COMPILER = [pytest.mark.cc]
CASES = [
    pytest.param(*case, id=name, marks=NEEDS_A_COMPILER if "run time" in name or "generation" in name else [])
    for name, case in STAGES.items()
]


@pytest.fixture(autouse=True)
def kept_here(tmp_path, monkeypatch):
    monkeypatch.setenv("PLUMBLINE_BUNDLE_DIRECTORY", str(tmp_path / "bundles"))
    plumbline.reset()


@pytest.mark.parametrize(("backend", "owner", "name", "wrong", "stage", "files"), CASES)
def test_an_error_of_ours_at_any_stage_changes_nothing_and_is_kept(backend, owner, name, wrong, stage, files):
    x = torch.randn(3, 4)
    with recording() as events, mock.patch.object(owner, name, wrong):
        result = plumbline.compile(program, backend=backend)(x)
    torch.testing.assert_close(result, program(x))
    failures = [event for event in events if isinstance(event, CompilerFailed)]
    assert [(event.stage, event.error) for event in failures] == [(stage, "ZeroDivisionError: planted")]
    assert set(os.listdir(failures[0].bundle)) == files
    about = Path(failures[0].bundle, "error.txt").read_text(encoding="utf-8")
    assert torch.__version__ in about
    assert "Traceback" in about
    assert failures[0].bundle in failures[0].text()


@pytest.mark.parametrize(("backend", "owner", "name", "wrong", "stage", "files"), CASES)
def test_strict_raises_it(backend, owner, name, wrong, stage, files):
    del stage, files
    with mock.patch.object(owner, name, wrong), pytest.raises(ZeroDivisionError, match="planted"):
        plumbline.compile(lambda x: torch.sin(x) * 2, backend=backend, options={"strict": True})(torch.ones(3))


def test_an_error_while_the_reason_of_a_recompilation_is_sought():
    run = plumbline.compile(program, backend="eager")
    x = torch.randn(3, 4)
    run(x)
    with recording() as events, mock.patch.object(unit, "failing_guard", planted):
        result = run(x, 3)
    assert torch.equal(result, program(x, 3))
    assert [event.stage for event in events if isinstance(event, CompilerFailed)] == ["recompile"]


def test_an_error_while_the_entry_is_made_gives_the_function_itself():
    with recording() as events, mock.patch.object(unit.Family, "entry_of", planted):
        assert plumbline.compile(program, backend="eager") is program
    assert [event.stage for event in events if isinstance(event, CompilerFailed)] == ["entry"]


@pytest.mark.cc
def test_an_error_while_the_backward_is_compiled():
    x, y = (torch.linspace(0, 1, 4).requires_grad_() for _ in range(2))
    compiled = plumbline.compile(lambda x: torch.sin(x).exp().sum(), backend="inductor")
    loss = compiled(x)
    with recording() as events, mock.patch.object(native, "compile_traced", planted):
        loss.backward()
    torch.sin(y).exp().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    (failure,) = [event for event in events if isinstance(event, CompilerFailed)]
    assert failure.stage == "backward"
    assert {"error.txt", "graph.py"} <= set(os.listdir(failure.bundle))


def test_errors_that_are_the_programs_own_are_not_ours():
    def out_of_range(x, index):
        return x[index] * 2

    run = plumbline.compile(out_of_range, backend="inductor")
    x = torch.randn(3)
    assert torch.equal(run(x, torch.tensor([0, 2])), x[[0, 2]] * 2)
    with recording() as events, pytest.raises((IndexError, RuntimeError), match="out of"):
        run(x, torch.tensor([0, 7]))
    assert not [event for event in events if isinstance(event, CompilerFailed)]


def test_a_bundle_holds_no_values_unless_asked_for():
    def read(asked):
        options = {"bundle_inputs": asked, "bundle_directory": f"{os.environ['PLUMBLINE_BUNDLE_DIRECTORY']}-{asked}"}
        with mock.patch.object(GraphBuilder, "call", planted), recording() as events:
            plumbline.compile(named, backend="eager", options=options)(torch.full((2, 2), 1234.5678), "patient 7")
        (failure,) = [event for event in events if isinstance(event, CompilerFailed)]
        return "".join(file.read_text(encoding="utf-8") for file in Path(failure.bundle).iterdir())

    kinds, values = read(False), read(True)
    assert "1234.5" not in kinds
    assert "patient" not in kinds
    assert "equals a text of 9 letters" in kinds
    assert "1234.5" in values
    assert "patient 7" in values


def test_the_script_of_a_bundle_runs(tmp_path):
    file = tmp_path / "users.py"
    file.write_text(
        textwrap.dedent("""
        import torch

        def scaled(x, *rest, k=2, **others):
            return torch.sin(x) * k + len(rest) + len(others)

        if __name__ == "__main__":
            import plumbline
            from plumbline.compiler.frontend.context.graph_builder import GraphBuilder
            call = GraphBuilder.call
            def wrong(*args, **kwargs):
                raise ZeroDivisionError("planted")
            GraphBuilder.call = wrong
            plumbline.compile(scaled, backend="eager")(torch.randn(2, 3).t(), "word", k=3, other=None)
    """)
    )
    subprocess.run([sys.executable, str(file)], check=True)
    (bundle,) = bundles(Options(bundle_directory=os.environ["PLUMBLINE_BUNDLE_DIRECTORY"]))
    done = subprocess.run([sys.executable, str(bundle / "repro.py")], capture_output=True, text=True, check=True)
    assert "the error is gone" in done.stdout
    assert "tensor([[" in done.stdout


def test_the_graph_of_a_bundle_is_python_that_runs():
    calls = []
    call_torch = GraphBuilder.call

    def third_time(self, *args, **kwargs):
        calls.append(1)
        return planted() if len(calls) == 3 else call_torch(self, *args, **kwargs)

    with mock.patch.object(GraphBuilder, "call", third_time), recording() as events:
        plumbline.compile(lambda x: (torch.sin(x) * 2).cos(), backend="eager")(torch.ones(3))
    (failure,) = [event for event in events if isinstance(event, CompilerFailed)]
    names = {}
    exec(Path(failure.bundle, "graph.py").read_text(encoding="utf-8"), names)
    assert torch.equal(names["forward"](torch.ones(3))[0], torch.sin(torch.ones(3)) * 2)


def test_bundles_are_bounded_and_the_same_error_is_written_once():
    options = {"bundle_limit": 3}
    made = []
    for number in range(5):

        def wrong(*_, number=number, **__):
            raise ZeroDivisionError(f"planted {number}")

        with mock.patch.object(GraphBuilder, "call", wrong), recording() as events:
            for _ in range(2):
                plumbline.reset()  # the code is the same each time
                plumbline.compile(lambda x: x.sin(), backend="eager", options=options)(torch.ones(2))
        places = [event.bundle for event in events if isinstance(event, CompilerFailed)]
        assert places[0] == places[1]
        made.append(places[0])
    assert len(bundles(Options(bundle_directory=os.environ["PLUMBLINE_BUNDLE_DIRECTORY"]))) == 3
    assert Path(made[-1]).is_dir()


@pytest.mark.parametrize("options", [{"bundle_limit": 0}, {"bundle_directory": "/dev/null/nowhere"}])
def test_without_a_disk_there_is_no_bundle_and_the_same_answer(options):
    with mock.patch.object(GraphBuilder, "call", planted), recording() as events:
        result = plumbline.compile(program, backend="eager", options=options)(torch.ones(2, 2))
    assert torch.equal(result, program(torch.ones(2, 2)))
    (failure,) = [event for event in events if isinstance(event, CompilerFailed)]
    assert failure.bundle == ""
    assert "PLUMBLINE_STRICT=1" in failure.text()


def test_explain_says_where_the_bundle_lies():
    with mock.patch.object(GraphBuilder, "call", planted):
        explanation = plumbline.explain(program, torch.ones(2, 2))
    assert explanation.errors[0].bundle in str(explanation)


def test_the_live_log_says_where_the_bundle_lies_and_strict_is_read_from_the_environment(tmp_path):
    program = textwrap.dedent("""
        import plumbline, torch
        from plumbline.compiler.frontend.context.graph_builder import GraphBuilder
        def wrong(*args, **kwargs):
            raise ZeroDivisionError("planted")
        GraphBuilder.call = wrong
        print(plumbline.compile(lambda x: x.sin() * 0, backend="eager")(torch.ones(1)))
    """)
    environment = {**os.environ, "PLUMBLINE_LOGS": "fallbacks", "PLUMBLINE_BUNDLE_DIRECTORY": str(tmp_path / "here")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "tensor([0.])\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith("[fallbacks] <lambda>: an error of plumbline's own in capture, run eagerly: ZeroDivision")
    assert f"see {tmp_path / 'here'}" in line
    environment |= {"PLUMBLINE_STRICT": "1", "PLUMBLINE_LOGS": ""}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("ZeroDivisionError: planted")
