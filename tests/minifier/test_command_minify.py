import importlib
import json
import sys
import zlib

import pytest

from plumbline.minifier import command_minify
from plumbline.minifier.command_minify import main


def run(monkeypatch, capsys, tmp_path, *arguments: str):
    """Return (exit status, stdout, stderr) of the command, run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["repro-minify", *arguments])
    with pytest.raises(SystemExit) as ending:
        main()
    captured = capsys.readouterr()
    return ending.value.code, captured.out, captured.err


FINE = "import torch\ntorch.nn.Linear(2, 2)(torch.ones(2))\n"
BAD = [
    ("", "no such file"),
    ("print(1)", "never calls anything compiled"),
    ("import nonsense_of_plumbline", "case.py:1: the script fails by itself: ModuleNotFoundError"),
    ("def f(:", "case.py:1: the script fails by itself: SyntaxError"),
    ("\nraise ValueError('own')", "case.py:2: the script fails by itself: ValueError: own"),
    ("import sys; sys.exit(3)", "the script fails by itself: SystemExit: 3"),
    (FINE, "1 judged call of compiled code, none fails"),
]


@pytest.mark.parametrize(("text", "said"), BAD, ids=[said for _, said in BAD])
def test_a_script_that_cannot_be_minified_is_one_line(monkeypatch, capsys, tmp_path, text, said):
    if text:
        (tmp_path / "case.py").write_text(text)
    before = sorted(tmp_path.iterdir())
    status, out, err = run(monkeypatch, capsys, tmp_path, "case.py", "--backend", "eager", "--by", "graph")
    assert status == 2
    assert said in err
    assert err.count("\n") == 1
    assert "; " in err
    assert out == ""
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--level", "7"], "choose 1, 2, 3 or 4"),
        (["--after", "lunch"], "choose dynamo or aot"),
        (["--compiler", "gcc"], "choose from plumbline, torch"),
        (["--backend", "onnx"], "choose from eager, aot_eager, inductor"),
        (["--out", "notes.txt"], "must be a .py file"),
        (["--out", "."], "must be a .py file"),
        (["--nonsense"], "No such option"),
        (["--proofs", "0"], "not in the range"),
    ],
)
def test_a_wrong_option_is_one_line(monkeypatch, capsys, tmp_path, arguments, said):
    (tmp_path / "case.py").write_text(FINE)
    status, _, err = run(monkeypatch, capsys, tmp_path, "case.py", *arguments)
    assert status == 2
    assert said in err
    assert err.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["case.py"]


def test_a_place_that_cannot_be_written_is_found_before_anything_runs(monkeypatch, capsys, tmp_path):
    (tmp_path / "case.py").write_text("raise SystemExit('ran')")
    (tmp_path / "file").write_text("")
    status, _, err = run(monkeypatch, capsys, tmp_path, "case.py", "--out", "file/repro.py")
    assert status == 2
    assert "file/repro.py: cannot write" in err


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TORCHDYNAMO_REPRO_LEVEL", "9", "unknown level '9'"),
        ("TORCHDYNAMO_REPRO_AFTER", "x", "unknown stage 'x'"),
    ],
)
def test_stocks_environment_names_are_honoured(monkeypatch, capsys, tmp_path, name, value, said):
    (tmp_path / "case.py").write_text(FINE)
    monkeypatch.setenv(name, value)
    assert said in run(monkeypatch, capsys, tmp_path, "case.py")[2]


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("test_x.py::test_none", "no test was run"),
        ("test_x.py::test_two", "selects 2 tests"),
        ("test_x.py::test_own", "fails by itself: AssertionError"),
        ("test_x.py::test_fine", "none fails"),
        ("test_x.py", "name a test in it: test_x.py::test_..."),
    ],
)
def test_a_test_that_cannot_be_minified_is_one_line(monkeypatch, capsys, tmp_path, node, said):
    file = f"test_x{zlib.crc32(node.encode())}.py"  # pytest imports a name once a process
    (tmp_path / file).write_text(
        "import pytest, torch\n"
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_two(n): pass\n"
        "def test_own(): assert torch.nn.Linear(1, 1)(torch.ones(1)) is None\n"
        "def test_fine(): torch.nn.Linear(1, 1)(torch.ones(1))\n"
    )
    status, _, err = run(
        monkeypatch, capsys, tmp_path, node.replace("test_x.py", file), "--backend", "eager", "--by", "graph"
    )
    assert (status, err.count("\n")) == (2, 1)
    assert said.replace("test_x.py", file) in err


def test_no_arguments_show_the_help(monkeypatch, capsys, tmp_path):
    status, out, _ = run(monkeypatch, capsys, tmp_path)
    assert status == 2
    assert "--level" in out


FAULTY = """
import torch, plumbline
from plumbline.testing import lowering_of, replace_lowering
aten = torch.ops.aten

def program(x):
    h = torch.relu(x.cos() * 2)
    return torch.softmax(h.exp() @ x, -1).cumsum(-1) + x.sigmoid()

def wrong(call):
    return lowering_of(aten.sin.default)(call)

compiled = plumbline.compile(program)
with replace_lowering(aten.relu.default, wrong):
    compiled(torch.randn(8, 8))
"""


@pytest.mark.cc
@pytest.mark.slow
def test_a_planted_lowering_is_minified_and_the_script_carries_it(monkeypatch, capsys, tmp_path):
    (tmp_path / "case.py").write_text(FAULTY)
    status, out, err = run(monkeypatch, capsys, tmp_path, "case.py", "--proofs", "1", "--json")
    assert status == 0, err
    found = json.loads(out)
    assert (found["ops"], found["stage"], found["reproduces"]) == (1, "inductor", True)
    assert found["queries"] <= 15
    assert "def wrong(call)" in (tmp_path / "repro_case.py").read_text()


@pytest.mark.cc
@pytest.mark.slow
@pytest.mark.parametrize(("level", "status"), [("1", 0), ("2", 3), ("3", 0)])
def test_levels(monkeypatch, capsys, tmp_path, level, status):
    (tmp_path / "case.py").write_text(FAULTY)
    found, out, err = run(monkeypatch, capsys, tmp_path, "case.py", "--proofs", "1", "--json", "--level", level)
    assert found == status, err
    result = json.loads(out)
    if level == "1":
        assert result["ops"] == result["ops_before"] == 9
    elif level == "2":
        assert (result["reason"], err.count("\n")) == ("NO_EXCEPTION", 1)
        assert [file.name for file in tmp_path.iterdir()] == ["case.py"]
    else:
        assert result["ops"] == 1


CAPTURE = """
import torch, plumbline
from plumbline.testing import replace_captured

def program(x):
    y = x.cos() * 2
    for _ in range(2):
        y = torch.relu(y) + 1
    return y.exp()

with replace_captured(torch.relu, torch.sin):
    plumbline.compile(program)(torch.randn(4, 4))
"""


@pytest.mark.slow
def test_a_fault_of_capture_is_reduced_to_the_lines_that_show_it(monkeypatch, capsys, tmp_path):
    (tmp_path / "case.py").write_text(CAPTURE)
    options = ("--backend", "eager", "--proofs", "1", "--json")
    status, out, err = run(monkeypatch, capsys, tmp_path, "case.py", *options)
    assert status == 0, err
    found = json.loads(out)
    assert (found["unit"], found["stage"], found["reproduces"]) == ("lines", "eager", True)
    script = (tmp_path / "repro_case.py").read_text()
    assert "cos" not in script
    assert "for _" not in script
    assert "1-minimal:   yes" in script
    assert "Culprit:     capture 0: captured program" in script
    assert found["culprit"].startswith("culprit: capture 0")


STOCK = """
import torch, torch._inductor.config
torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "{kind}"

@torch.compile
def program(x, w):
    h = torch.relu(x @ w).exp()
    return torch.softmax(h.tanh() - x, -1).cumsum(-1)

program(torch.randn(8, 8), torch.randn(8, 8))
"""


@pytest.mark.cc
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["accuracy", "compile_error"])
def test_stock_inductor_end_to_end(monkeypatch, capsys, tmp_path, kind):
    (tmp_path / "case.py").write_text(STOCK.format(kind=kind))
    # The script runs in this process and sets the hook; no later test may meet it.
    with importlib.import_module("torch._inductor.config").patch({"cpp.inject_relu_bug_TESTING_ONLY": None}):
        options = ("--compiler", "torch", "--proofs", "1", "--json")
        status, out, err = run(monkeypatch, capsys, tmp_path, "case.py", *options)
    assert status == 0, err
    found = json.loads(out)
    assert (found["ops"], found["stage"]) == (1, "inductor")
    assert found["queries"] <= 15
    assert "aten.relu.default" in (tmp_path / "repro_case.py").read_text()


def test_a_name_for_the_script_follows_the_case():
    assert command_minify._default_name("a/b/case.py") == "repro_case.py"
    assert command_minify._default_name("a/test_b.py::TestC::test_d[3]") == "repro_d.py"
