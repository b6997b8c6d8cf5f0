"""Calls that do not return: each question ends, and those that only repeat the hang end soon."""

import time
from pathlib import Path

import pytest
import torch

from plumbline.compiler import backends
from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.minifier import minify, sandbox
from plumbline.minifier.cases import failing_calls
from plumbline.minifier.cases.failing_calls import FailingCall, verdict_of
from plumbline.minifier.minify import MinifyOptions, minify_failing
from plumbline.minifier.minify_case import minify_case
from plumbline.minifier.repro.proof import Proof
from plumbline.minifier.sandbox import ChildOutcome
from plumbline.oracle.harness.boundary import call_roots
from plumbline.oracle.harness.compilers import CompileRequest
from plumbline.oracle.state.snapshot import Snapshot

SCRIPT = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
torch.compile(model)(torch.ones(2, 4))
"""


def net(x):
    return torch.relu(x.sin() + 1).cos() * 2


def sleeping_backend(graph, inputs, options):
    """Return a backend whose graphs do not return where they hold a relu."""
    del inputs, options
    asleep = any("relu" in str(node.target) for node in graph.graph.nodes)

    def run(*args):
        time.sleep(1000 if asleep else 0)
        return interpret(graph, args)

    return run


@pytest.fixture(autouse=True)
def planted(monkeypatch):
    """The fault is in this process and its forks only, so scripts are believed unseen."""
    monkeypatch.setattr(minify, "prove", lambda written, times, signature: Proof(True, times, ""))
    with backends.replaced_backend("aot_eager", sleeping_backend):
        yield


def test_queries_of_a_call_that_hangs_have_a_limit_by_the_size_of_their_graph(tmp_path, monkeypatch):
    limits: dict[str, list[float]] = {"call": [], "graph": []}

    def asked(kind):
        def in_child(question, seconds):
            limits[kind].append(seconds)
            return sandbox.in_child(question, 1.0)

        return in_child

    monkeypatch.setattr(failing_calls, "in_child", asked("call"))
    monkeypatch.setattr(minify, "in_child", asked("graph"))
    args = (torch.ones(3),)
    before = Snapshot.take(call_roots(net, "function", args, {}))
    late = verdict_of(ChildOutcome(death="hang"))
    call = FailingCall(net, CompileRequest(), args, {}, before, late, "plumbline", "aot_eager")
    options = MinifyOptions(out=tmp_path / "repro.py", level=3, proofs=1, seconds=100.0, bisect=False)
    found = minify_failing(call, options)
    assert (found.stage, found.ops, found.reproduces) == ("aot_eager", 1, True)
    assert set(limits["call"]) == {100.0}
    assert limits["graph"]
    assert max(limits["graph"]) < 20.0


@pytest.mark.slow
def test_a_case_that_hangs_gets_a_script(tmp_path):
    case = Path(tmp_path, "case.py")
    case.write_text(SCRIPT)
    options = MinifyOptions(out=tmp_path / "repro.py", proofs=1, seconds=3.0, bisect=False)
    said: list[str] = []
    found = minify_case(str(case), "plumbline", "aot_eager", options, by="graph", progress=said.append)
    assert (found.stage, found.ops, found.reproduces) == ("aot_eager", 1, True)
    assert "relu" in options.out.read_text()
