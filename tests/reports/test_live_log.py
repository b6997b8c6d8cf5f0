"""PLUMBLINE_LOGS says on standard error what the compiler does, in the user's terms."""

import io
import os
import subprocess
import sys

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import UserError
from plumbline.reports import live_log
from plumbline.reports.live_log import TOPICS, start_live_log, topics_of_torch

SCRIPT = """
import torch, plumbline

def f(x):
    print(end="")
    return x + x.shape[0]

g = plumbline.compile(f, backend="eager", dynamic=False)
g(torch.ones(3)); g(torch.ones(4))
"""


def test_the_environment_variable_is_read_once_and_breaks_and_recompiles_are_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PLUMBLINE_LOGS": "graph_breaks,recompiles"}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
    )
    lines = done.stderr.splitlines()
    assert any(line.startswith(f"[graph_breaks] {script}:5: graph break: ") for line in lines), done.stderr
    assert any(line.startswith("[recompiles] ") and "compiled again" in line for line in lines), done.stderr
    assert done.stdout == ""


def test_every_topic_speaks():
    stream = io.StringIO()
    stop = start_live_log("all", stream)
    try:

        def f(x, w):
            y = (x.sin() + 1).sum(0) * w
            print(end="")
            return torch.sort(y)[0] + torch.cumsum(y, 0)

        compiled = plumbline.compile(f, dynamic=False)
        compiled(torch.ones(3, 4), torch.ones(4))
        compiled(torch.ones(5, 4), torch.ones(4))
    finally:
        stop()
    said = {line.split("]")[0][1:] for line in stream.getvalue().splitlines() if line.startswith("[")}
    assert {"graph_breaks", "recompiles", "guards", "stages", "output_code", "graph_code"} <= said
    assert said <= set(TOPICS)


def test_an_unknown_topic_is_one_line():
    with pytest.raises(UserError, match="unknown topic 'graphs'; did you mean 'graph_breaks'") as caught:
        start_live_log("graphs")
    assert "\n" not in str(caught.value)


def test_set_logs_starts_replaces_and_stops(tmp_path):
    stream = io.StringIO()

    def said(**topics):
        plumbline.set_logs(stream=stream, **topics)
        before = len(stream.getvalue())
        plumbline.compile(lambda x: x + 1, backend="eager", options={"bundle_limit": len(stream.getvalue())})(
            torch.ones(2)
        )
        return {line.split("]")[0][1:] for line in stream.getvalue()[before:].splitlines() if line.startswith("[")}

    try:
        assert said(graph_code=True, guards=False) == {"graph_code"}
        assert said(guards=True) == {"guards"}
        assert {"guards", "graph_code", "stages"} <= said(all=True)
        assert said() == set()
        with pytest.raises(UserError, match="did you mean 'guards'"):
            plumbline.set_logs(guard=True)
    finally:
        plumbline.set_logs()


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("output_code", "output_code"),
        ("+dynamo,graph_breaks,recompiles_verbose", "graph_breaks,recompiles"),
        ("kernel_code,output_code", "output_code"),
        ("inductor,aot", ""),
        ("all", "all"),
    ],
)
def test_what_torch_logs_names_is_taken_where_there_is_the_like(theirs, ours):
    assert topics_of_torch(theirs) == ours


def test_the_variable_of_torch_prints_generated_code(monkeypatch, capsys):
    stops = []
    monkeypatch.setattr(plumbline, "_STARTED", [])
    monkeypatch.setattr(live_log, "start_live_log", lambda topics: stops.append(start_live_log(topics)))
    monkeypatch.setenv("TORCH_LOGS", "+dynamo,output_code")
    plumbline._start_logs()
    try:
        plumbline.compile(lambda x: x.sin() - 7, backend="aot_eager")(torch.ones(3))
        plumbline._start_logs()  # once in a process
    finally:
        for stop in stops:
            stop()
    assert "[output_code] autograd: joint" in capsys.readouterr().err
    assert len(stops) == 1
