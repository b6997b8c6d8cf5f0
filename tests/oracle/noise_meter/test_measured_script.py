"""Scripts under the noise meter: what is measured of them, and what they see while they run."""

import sys
from pathlib import Path

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.oracle import NoiseMeter
from plumbline.oracle.noise_meter.measured_script import script_reports, users_traceback

SCRIPT = """
import sys
import torch

x = torch.rand(10, generator=torch.Generator().manual_seed(0))
shifted = (x + 1e8) - 1e8
pair = {"low": [x.exp()], "other": 1}
count = torch.arange(3)
arguments = sys.argv[1:]
w = x.clone().requires_grad_()
(w.exp() * 0.1).sum().backward()


def f(y=x):
    return y.sin()


def needy(z):
    return z


class Grouped:
    @staticmethod
    def inner():
        return x.cos()


if __name__ == "__main__":
    late = x.tan()
"""


def paths(reports):
    return [output.path for report in reports for output in report.outputs]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "program_under_meter.py"
    file.write_text(SCRIPT, encoding="utf-8")
    return file


def test_the_names_of_a_script_are_its_outputs(script: Path):
    reports = script_reports(str(script), [], NoiseMeter())
    assert paths(reports) == ["shifted", "pair['low'][0]", "w", "gradient of w", "late"]
    lines = reports[0].outputs[0].lines
    assert [(line.file, line.line) for line in lines] == [(str(script), 6)]


def test_a_function_of_a_script_is_called_once(script: Path):
    (report,) = script_reports(f"{script}::f", [], NoiseMeter())
    assert (report.program, [output.path for output in report.outputs]) == ("f", ["output"])
    (report,) = script_reports(f"{script}::Grouped.inner", [], NoiseMeter())
    assert report.outputs[0].lines[0].source == "return x.cos()"


def test_marked_calls_are_all_that_is_measured(tmp_path: Path):
    file = tmp_path / "marked.py"
    file.write_text(
        "import torch, plumbline\ny = torch.ones(3).exp()\n"
        "for n in range(2):\n    plumbline.measure_noise(torch.sin, y)\n",
        encoding="utf-8",
    )
    assert paths(script_reports(str(file), [], NoiseMeter())) == ["output", "output"]


def test_a_script_sees_its_arguments_and_nothing_is_left_behind(tmp_path: Path):
    file = tmp_path / "seen.py"
    file.write_text(
        "import sys, __main__\nassert __name__ == '__main__' and __main__.__file__ == __file__\n"
        "assert sys.argv[1:] == ['--steps', '3'] and sys.path[0] == __file__.rpartition('/')[0]\nsys.exit()\n",
        encoding="utf-8",
    )
    before = sys.argv, list(sys.path), sys.modules["__main__"]
    assert paths(script_reports(str(file), ["--steps", "3"], NoiseMeter())) == []
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before


def test_requests_that_cannot_be_met_are_told(script: Path):
    for target, words in (
        ("nowhere.py", "there is no file nowhere.py"),
        (f"{script}::missing", "there is no function missing; it has f, needy"),
        (f"{script}::needy", r"needs arguments \(z\)"),
    ):
        with pytest.raises(UserError, match=words):
            script_reports(target, [], NoiseMeter())


def test_a_traceback_begins_in_the_script(tmp_path: Path):
    file = tmp_path / "failing.py"
    file.write_text("def g():\n    return 1 / 0\n\n\ng()\n", encoding="utf-8")
    with pytest.raises(ZeroDivisionError) as raised:
        script_reports(str(file), [], NoiseMeter())
    text = users_traceback(raised.value)
    assert text.splitlines()[1].strip().startswith(f'File "{file}", line 5')
    assert text.endswith("ZeroDivisionError: division by zero")
