"""`import plumbline` costs nothing and promises what it can keep."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import plumbline

HEAVY = [
    "torch",
    "numpy",
    "pandas",
    "sqlalchemy",
    "jinja2",
    "pytest",
    "click",
    "plumbline.oracle",
    "plumbline.oracle.judge",
]


def loaded_after(code: str) -> list[str]:
    listing = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"
    command = [sys.executable, "-c", f"{code}\n{listing}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return eval(done.stdout)


def test_importing_plumbline_loads_nothing_heavy():
    assert loaded_after("import plumbline; plumbline.__version__; dir(plumbline)") == []


def test_importing_the_plugin_loads_no_torch():
    loaded = loaded_after("import plumbline.pytest_plugin.plugin")
    assert not {"torch", "pandas", "sqlalchemy", "plumbline.oracle.judge"} & set(loaded)  # options only


def test_importing_the_command_line_loads_only_click():
    assert loaded_after("import plumbline.command") == ["click"]


def test_the_version_is_the_one_of_the_project():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert plumbline.__version__ == project["project"]["version"]


def test_the_oracle_arrives_when_it_is_asked_for():
    code = "import sys, plumbline; o = plumbline.oracle; assert o is sys.modules['plumbline.oracle']"
    assert "plumbline.oracle" in loaded_after(code)


def test_unknown_names_are_told_as_python_tells_them():
    with pytest.raises(AttributeError, match="module 'plumbline' has no attribute 'nonsense'"):
        _ = plumbline.nonsense
    with pytest.raises(ImportError, match="nonsense"):
        exec("from plumbline import nonsense")


def test_public_names_are_listed_before_they_are_loaded():
    assert {"oracle", "__version__"} <= set(dir(plumbline))


def test_the_page_on_controls_names_every_control():
    page = (Path(__file__).resolve().parents[2] / "docs" / "controls.md").read_text(encoding="utf-8")
    others = {"oracle", "testing", "skip"}  # not of the compiler; deprecated
    assert [name for name in plumbline._LAZY if name not in others and not re.search(rf"\b{name}\b", page)] == []
