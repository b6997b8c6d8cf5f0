"""compile_graph: right results whatever the machine, the cache or the graph are like, and a record of what happened."""

import hashlib
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import fx

from plumbline.compiler.base.errors import BuildError, UserError
from plumbline.compiler.base.events import Artifact, CompilerFailed, FellBack, KernelBuilt, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.lowering.registry import (
    LOWERINGS,
    LoweringCall,
    lowering_of,
    lowers,
    replace_lowering,
    replaced_lowerings,
)
from plumbline.compiler.lowering.writer import LoopTensor
from plumbline.compiler.native import compile_graph, extra_decompositions
from plumbline.compiler.runtime import c_build

aten = torch.ops.aten
X = torch.linspace(-3, 3, 40).reshape(5, 8)


def program(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() + 1).relu()


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget loaded libraries, so that the disk is asked as a new process would."""
    monkeypatch.setattr(c_build, "_LOADED", {})
    c_build._toolchain.cache_clear()


def built(options: Options) -> tuple[torch.Tensor, list[object]]:
    with recording() as events:
        (found,) = compile_graph(trace(program, (X,)), (X,), options)(X)
    assert isinstance(found, torch.Tensor)
    return found, list(events)


@pytest.mark.cc
@pytest.mark.usefixtures("fresh")
def test_a_kernel_is_built_once_and_then_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(strict=True, cache_directory=str(tmp_path))
    for cached in (False, True):
        monkeypatch.setattr(c_build, "_LOADED", {})
        found, events = built(options)
        torch.testing.assert_close(found, program(X))
        assert [event.cached for event in events if isinstance(event, KernelBuilt)] == [cached]


@pytest.mark.cc
@pytest.mark.usefixtures("fresh")
def test_a_kernel_is_found_when_its_lines_have_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(cache_directory=str(tmp_path))
    told = []
    for line, answer in ((3, 7), (90, 7), (90, 8)):
        monkeypatch.setattr(c_build, "_LOADED", {})
        text = f"/* user.py:{line}\n   x * {line} */\nint answer(void) {{ return {answer}; /* user.py:{line} */ }}\n"
        with recording() as events:
            library = c_build.build(text, {}, "moved", 1, options)
        told += [(event.cached, library.answer()) for event in events if isinstance(event, KernelBuilt)]
    assert told == [(False, 7), (True, 7), (False, 8)]


@pytest.mark.cc
@pytest.mark.slow
def test_a_fresh_process_finds_the_kernel(tmp_path: Path) -> None:
    code = """
import torch
from plumbline.compiler.base.events import KernelBuilt, recording
from plumbline.compiler.base.options import options_from_environment
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.native import compile_graph
x = torch.ones(20)
with recording() as events:
    compile_graph(trace(lambda x: x.exp() * 2, (x,)), (x,), options_from_environment().replace(strict=True))(x)
print([event.cached for event in events if isinstance(event, KernelBuilt)])
"""
    environment = {**os.environ, "PLUMBLINE_CACHE_DIRECTORY": str(tmp_path)}
    answers = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert answers == ["[False]\n", "[True]\n"]


@pytest.mark.cc
@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("damage", ["file_for_folder", "corrupt_entry", "no_library"])
def test_a_broken_cache_costs_nothing_but_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    folder = tmp_path / "cache"
    options = Options(strict=True, cache_directory=str(folder))
    if damage == "file_for_folder":
        folder.write_text("")
    else:
        built(options)
        (entry,) = folder.rglob("*.so")
        entry.unlink()  # a new file: the old one is mapped into this very process
        entry.write_bytes(b"not a library")
        if damage == "no_library":  # whole by its checksum, and still not loadable
            entry.with_suffix(".sha256").write_text(hashlib.sha256(b"not a library").hexdigest())
        monkeypatch.setattr(c_build, "_LOADED", {})
    found, events = built(options)
    torch.testing.assert_close(found, program(X))
    reasons = [event.why for event in events if isinstance(event, FellBack)]
    assert len(reasons) == (1 if damage == "file_for_folder" else 0)
    assert all("\n" not in reason for reason in reasons)


@pytest.mark.usefixtures("fresh")
def test_without_a_compiler_the_graph_runs_op_by_op_with_one_warning(tmp_path: Path) -> None:
    options = Options(compiler="no-such-compiler", cache_directory=str(tmp_path))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            found, events = built(options)
            assert torch.equal(found, program(X))
            assert [event.operation for event in events if isinstance(event, FellBack)] == ["graph"]
    assert len([each for each in caught if "op by op" in str(each.message)]) == 1
    with pytest.raises(BuildError):
        built(options.replace(strict=True))


@pytest.mark.cc
def test_another_layout_than_compiled_for_still_gives_the_right_answer() -> None:
    compiled = compile_graph(trace(program, (X,)), (X,), Options(strict=True))
    negated = torch.complex(X, X).conj().imag  # a view with the sign still to be turned
    same_strides = torch.empty_strided(X.shape, negated.stride()).copy_(X)
    for other in (X.t().contiguous().t(), X[:3], X.double(), X.reshape(2, 4, 5), negated):
        torch.testing.assert_close(compiled(other)[0], program(other))
    compiled = compile_graph(trace(program, (same_strides,)), (same_strides,), Options(strict=True))
    torch.testing.assert_close(compiled(negated)[0], program(negated))


@pytest.mark.cc
def test_a_graph_without_example_values_gets_them() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(aten.add.Tensor, (graph.call_function(aten.sin.default, (x,)), 1)), None, x))
    gm = fx.GraphModule(torch.nn.Module(), graph)
    total, nothing, same = compile_graph(gm, (X,), Options(strict=True))(X)
    torch.testing.assert_close(total, X.sin() + 1)
    assert nothing is None
    assert same is X
    assert "val" not in x.meta  # the caller's graph is not touched


@pytest.mark.cc
def test_what_loops_cannot_hold_is_called_in_aten() -> None:
    def mixed(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z = torch.view_as_complex(x.reshape(5, 4, 2).contiguous())
        return z.abs() + 1, torch.linalg.svdvals(x) * 2, x.cumsum(1).relu(), x.sort(1)[0].exp()

    for found, want in zip(compile_graph(trace(mixed, (X,)), (X,), Options(strict=True))(X), mixed(X), strict=True):
        torch.testing.assert_close(found, want)


@pytest.mark.cc
def test_an_error_of_ours_is_recorded_and_the_graph_still_runs() -> None:
    def faulty(call: LoweringCall) -> LoopTensor:
        raise ZeroDivisionError("planted")

    with replace_lowering(aten.sin.default, faulty):
        with recording() as events:
            (found,) = compile_graph(trace(program, (X,)), (X,), Options())(X)
        assert torch.equal(found, program(X))
        assert "planted" in next(event.error for event in events if isinstance(event, CompilerFailed))
        with pytest.raises(ZeroDivisionError, match="planted"):
            compile_graph(trace(program, (X,)), (X,), Options(strict=True))


@pytest.mark.cc
def test_a_wrong_lowering_is_in_force_only_in_its_scope() -> None:
    right = LOWERINGS[aten.relu.default]

    def wrong(call: LoweringCall) -> LoopTensor:
        return call.pointwise(lambda b, x: b.op("neg", x), "self")

    with replace_lowering(aten.relu.default, wrong):
        assert list(replaced_lowerings()) == [aten.relu.default]
        assert lowering_of(aten.relu.default) is wrong
        (found,) = compile_graph(trace(program, (X,)), (X,), Options(strict=True))(X)
        torch.testing.assert_close(found, -(X.sin() + 1))
    assert lowering_of(aten.relu.default) is right
    assert replaced_lowerings() == {}
    torch.testing.assert_close(compile_graph(trace(program, (X,)), (X,), Options(strict=True))(X)[0], program(X))
    with pytest.raises(UserError, match="not an operator overload"), replace_lowering("relu", wrong):  # type: ignore[arg-type]  # on purpose
        pass


def test_an_operator_has_one_lowering() -> None:
    with pytest.raises(ValueError, match="two lowerings"):
        lowers(aten.relu.default)(LOWERINGS[aten.relu.default])


def test_decompositions_leave_lowered_operators_whole() -> None:
    wanted = extra_decompositions()
    assert aten.native_layer_norm.default not in wanted
    assert aten.native_layer_norm_backward.default in wanted


@pytest.mark.cc
def test_every_text_is_recorded() -> None:
    _, events = built(Options(strict=True))
    texts = {event.name: event.text for event in events if isinstance(event, Artifact)}
    assert set(texts) == {"loops.py", "host.py", "graph.c"}
    assert "#include" not in texts["graph.c"]
    assert texts["host.py"].startswith("def run(")


@pytest.mark.cc
def test_threads_may_call_one_graph_at_once() -> None:
    inputs = [torch.randn(64, 33) + n for n in range(8)]
    run = compile_graph(trace(lambda x: x.softmax(1) @ x.t(), (inputs[0],)), (inputs[0],), Options(strict=True))
    with ThreadPoolExecutor(4) as pool:
        for x, (found,) in zip(inputs * 4, pool.map(run, inputs * 4), strict=True):
            torch.testing.assert_close(found, x.softmax(1) @ x.t())
