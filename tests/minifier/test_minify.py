"""The whole way in this process, on compilers with planted faults; `judged` scripts run in fresh processes."""

import pytest
import torch

from plumbline.compiler import backends
from plumbline.compiler.base.errors import UserError
from plumbline.compiler.codegen.triton import triton_library
from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.runtime.triton_interpreter import why_unavailable
from plumbline.minifier import minify
from plumbline.minifier.calls import minify_call, minify_node
from plumbline.minifier.repro.proof import Proof


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)

    def forward(self, x):
        h = torch.nn.functional.gelu(self.first(x))
        return torch.tanh(self.second(h) + x).sum(-1)


@pytest.fixture
def trusting(monkeypatch):
    """Believe scripts unseen: a fault planted in this process is not in a fresh one."""
    monkeypatch.setattr(minify, "prove", lambda written, times, signature: Proof(True, times, ""))


def wrong_backend(target):
    """Return a backend that runs graphs as captured but gets one torch function wrong."""

    def backend(graph, inputs, options):
        del inputs, options
        wrong = {node for node in graph.graph.nodes if node.target is target}
        assert graph.graph is not None
        return lambda *args: interpret(graph, args, after=lambda node, value: value * 1.5 if node in wrong else value)

    return backend


def test_a_fault_after_capture_is_minified_after_dynamo(tmp_path, trusting):
    with backends.replaced_backend("aot_eager", wrong_backend(torch.nn.functional.gelu)):
        found = minify_call(Net(), (torch.randn(3, 4),), out=tmp_path / "repro.py", backend="aot_eager", proofs=1)
    assert (found.stage, found.ops, found.reproduces) == ("aot_eager", 1, True)
    assert found.queries <= 15
    assert "gelu" in (tmp_path / "repro.py").read_text()


def test_a_fault_of_capture_has_no_graph(tmp_path, trusting):
    with backends.replaced_backend("eager", wrong_backend(torch.nn.functional.gelu)):
        found = minify_call(Net(), (torch.randn(3, 4),), out=tmp_path / "repro.py", backend="eager", proofs=1)
    assert (found.path, found.reason) == (None, "CAPTURE")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_that_eager_refuses_has_no_values_to_be_cut_by(tmp_path, trusting):
    """What compiled code does not raise is for the reducer of source: `--by auto` goes on with it."""

    def forgiving(graph, inputs, options):
        def call(function, args, kwargs):
            return args[0] if function is torch.linalg.cholesky else function(*args, **kwargs)

        del inputs, options
        return lambda *args: interpret(graph, args, call=call)

    with backends.replaced_backend("aot_eager", forgiving):
        given = (lambda x: torch.linalg.cholesky(x - 3).exp(), (torch.eye(3),))
        found = minify_call(*given, out=tmp_path / "repro.py", backend="aot_eager", proofs=1)
    assert (found.path, found.reason) == (None, "NOT_IN_A_GRAPH")
    assert "eager raises in it" in found.sentence
    assert list(tmp_path.iterdir()) == []


def test_a_script_that_does_not_reproduce_is_never_announced(tmp_path):
    """The fault is planted in this process only, so the fresh one is right."""
    with backends.replaced_backend("aot_eager", wrong_backend(torch.nn.functional.gelu)):
        found = minify_call(Net(), (torch.randn(3, 4),), out=tmp_path / "repro.py", backend="aot_eager", proofs=1)
    assert (found.path, found.reason) == (None, "DOES_NOT_REPRODUCE")
    assert "run 1 of 1 ends with status 0" in found.sentence
    assert list(tmp_path.iterdir()) == []


def test_a_call_that_does_not_fail_is_refused_and_leaves_no_trace(tmp_path):
    net, x = Net(), torch.randn(3, 4)
    with pytest.raises(UserError, match="the call does not fail"):
        minify_call(net, (x,), out=tmp_path / "repro.py", backend="eager")
    assert list(tmp_path.iterdir()) == []


def test_state_is_as_before_the_call(tmp_path, trusting):
    def counts(x, seen):
        seen.append(len(seen))
        return torch.nn.functional.gelu(x.add_(1))

    x, seen = torch.zeros(3), []
    with backends.replaced_backend("aot_eager", wrong_backend(torch.nn.functional.gelu)):
        minify_call(counts, (x, seen), out=tmp_path / "repro.py", backend="aot_eager", proofs=1)
    assert x.tolist() == [0.0, 0.0, 0.0]
    assert seen == []


TEST = """
import torch
from plumbline.testing import lowering_of, replace_lowering
aten = torch.ops.aten

def test_net():
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with replace_lowering(aten.relu.default, lowering_of(aten.sin.default)):
        assert net(torch.randn(3, 4)).shape == (3, 2)
"""


@pytest.mark.cc
@pytest.mark.slow
def test_a_node_is_minified_in_a_process_of_its_own(tmp_path):
    (tmp_path / "test_planted.py").write_text(TEST)
    found = minify_node("test_planted.py::test_net", out=tmp_path / "repro.py", folder=tmp_path)
    assert (found.ops, found.reproduces, found.stage) == (1, True, "inductor"), found.sentence
    assert found.path == tmp_path / "repro.py"


RAISING = """
import torch
from plumbline.testing import replace_lowering

def refuse(call):
    raise ValueError("refused")

def test_net():
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with replace_lowering(torch.ops.aten.relu.default, refuse):
        assert net(torch.randn(3, 4)).shape == (3, 2)
"""


@pytest.mark.slow
def test_an_error_of_the_compiler_that_no_call_feels_is_minified_as_a_graph(tmp_path):
    (tmp_path / "test_planted.py").write_text(RAISING)
    found = minify_node("test_planted.py::test_net", out=tmp_path / "repro.py", folder=tmp_path)
    assert (found.ops, found.unit, found.stage) == (1, "operators", "inductor"), found.sentence
    assert "ValueError in the compile at the program:refuse" in found.sentence
    assert "lowering 0: made a loop of aten.relu.default" in found.culprit


@pytest.mark.slow
def test_a_node_that_cannot_be_minified_gives_a_reason(tmp_path):
    found = minify_node("test_none.py::test_net", out=tmp_path / "repro.py", folder=tmp_path)
    assert (found.path, found.reason) == (None, "NOT_RUN")
    assert "no such file" in found.sentence


@pytest.mark.cc
@pytest.mark.slow
def test_a_wrong_backward_lowering_is_found_in_the_backward_graph(tmp_path, trusting):
    aten = torch.ops.aten
    testing = pytest.importorskip("plumbline.testing", reason="needs the compiler")
    x = torch.randn(4, 4, requires_grad=True)
    with testing.replace_lowering(aten.cos.default, testing.lowering_of(aten.sin.default)):
        found = minify_call(lambda x: (x.sin() * 2).exp().sum(), (x,), out=tmp_path / "repro.py", proofs=1)
    assert (found.stage, found.ops) == ("inductor", 1), found.sentence
    assert "aten.cos.default" in (tmp_path / "repro.py").read_text()


class Wave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * torch.cos(ctx.saved_tensors[0])


class WaveNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        return Wave.apply(torch.tanh(self.inner(x))).sum()


@pytest.mark.cc
def test_the_backward_graph_of_a_module_is_captured_with_a_function_of_the_users(tmp_path, trusting):
    """Its forward graph after capture calls what no script can name; the one after autograd does not."""
    aten = torch.ops.aten
    testing = pytest.importorskip("plumbline.testing", reason="needs the compiler")
    with testing.replace_lowering(aten.cos.default, testing.lowering_of(aten.sin.default)):
        found = minify_call(WaveNet(), (torch.randn(3, 4),), out=tmp_path / "repro.py", proofs=1)
    assert (found.stage, found.ops) == ("inductor", 1), found.sentence
    assert "aten.cos.default" in (tmp_path / "repro.py").read_text()


@pytest.mark.skipif(bool(why_unavailable()), reason=f"kernels cannot be interpreted: {why_unavailable()}")
def test_a_fault_of_triton_alone_is_minified_after_autograd(tmp_path, trusting, monkeypatch):
    broken = triton_library.LIBRARY.replace("return a + b", "return a + b + b * 0.01")
    monkeypatch.setattr("plumbline.compiler.codegen.triton.interpreted_segments.LIBRARY", broken)
    found = minify_call(Net(), (torch.randn(3, 4),), out=tmp_path / "repro.py", backend="triton", proofs=1)
    assert (found.stage, found.ops, found.reproduces) == ("triton", 1, True)
    script = (tmp_path / "repro.py").read_text()
    assert "aten.sum.dim_IntList" in script
    assert '"triton", "aot"' in script
