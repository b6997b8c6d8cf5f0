"""`debug` writes every stage of a compilation to a folder with an index page."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

import plumbline

LINKS = re.compile(r"\]\(([^)]+)\)")


@pytest.fixture(autouse=True)
def fresh():
    plumbline.reset()


def folders(root):
    (run,) = root.iterdir()
    return sorted(item for item in run.iterdir() if item.is_dir())


def names(folder):
    return {re.sub(r"^(backward_)?\d\d_", r"\1", file.name) for file in folder.iterdir()}


def loss(x, w):
    y = (x @ w).sigmoid()
    print("woo")
    return (y * y).sum()


@pytest.mark.cc
def test_every_stage_of_forward_and_backward_is_there(tmp_path, capsys):
    options = {"debug": True, "record_directory": str(tmp_path)}
    w = torch.randn(3, 2, requires_grad=True)
    plumbline.compile(loss, options=options)(torch.randn(4, 3), w).backward()
    assert capsys.readouterr().out == "woo\n"
    first, second = folders(tmp_path)
    assert (first.name, second.name) != (second.name, first.name)
    assert first.name.endswith("-loss")
    assert second.name.endswith("-loss_after_a_break")
    expected = {
        "source.py",
        "bytecode.txt",
        "guards.txt",
        "captured_graph.py",
        "aten_joint.py",
        "aten_forward.py",
        "aten_backward.py",
        "loops.py",
        "schedule.py",
        "host.py",
        "kernels.c",
        "specialisation.py",
        "README.md",
    }
    backward = {"backward_loops.py", "backward_schedule.py", "backward_host.py", "backward_kernels.c"}
    assert expected | backward <= names(second)
    assert expected - {"aten_backward.py"} <= names(first)
    page = (first / "README.md").read_text(encoding="utf-8")
    assert all((first / link).is_file() for link in LINKS.findall(page))
    assert "| capture |" in page
    assert "graph break: " in page
    index = (first.parent / "README.md").read_text(encoding="utf-8")
    assert LINKS.findall(index) == [f"{folder.name}/README.md" for folder in (first, second)]


def test_texts_that_claim_to_run_do(tmp_path):
    options = {"debug": True, "record_directory": str(tmp_path)}
    x = torch.randn(4)
    plumbline.compile(lambda x: torch.sin(x) * 2, backend="aot_eager", options=options)(x)
    (folder,) = folders(tmp_path)
    scope = {"torch": torch}
    exec((folder / "05_aten_joint.py").read_text(encoding="utf-8"), scope)
    assert torch.equal(scope["forward"](x)[0], torch.sin(x) * 2)
    assert "torch.sin(x) * 2" in (folder / "01_source.py").read_text(encoding="utf-8")


def test_nothing_is_written_unless_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plumbline.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_written_changes_nothing(tmp_path):
    options = {"debug": True, "record_directory": "/dev/null/nowhere"}
    assert plumbline.compile(lambda x: x + 1, backend="eager", options=options)(torch.ones(1)).item() == 2


def test_torchs_environment_variable_turns_it_on(tmp_path):
    program = "import plumbline, torch; plumbline.compile(lambda x: x + 1, backend='eager')(torch.ones(1))"
    environment = {"TORCH_COMPILE_DEBUG": "1", "PATH": "", "PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path, env=environment)
    (folder,) = folders(Path(tmp_path, "plumbline_debug"))
    assert {"captured_graph.py", "specialisation.py"} <= names(folder)


def test_files_are_switched_on_and_off_one_by_one(tmp_path):
    options = {"debug": True, "record_directory": str(tmp_path), "debug_files": "-guards,-source,graph_diagram"}
    options["debug_files"] += ",compile_profile"
    plumbline.compile(lambda x, y: (x.sin() * y).sum(), backend="aot_eager", options=options)(
        torch.ones(3), torch.ones(3)
    )
    (folder,) = folders(tmp_path)
    written = names(folder)
    assert {"bytecode.txt", "captured_graph.py", "captured_graph.svg", "compile_profile.txt"} <= written
    assert not written & {"guards.txt", "source.py"}
    picture = ElementTree.parse(next(folder.glob("*.svg"))).getroot()
    words = {text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {"sin = sin", "f32[3]", "output"} <= words
    assert "cumulative" in next(folder.glob("*compile_profile.txt")).read_text()
