"""Every module imports, and the examples in its docstrings say the truth."""

import doctest
import importlib
from pathlib import Path

import pytest

from support.house_rules import TOP_FOLDERS

ROOT = Path(__file__).resolve().parents[1]


def module_names() -> list[str]:
    """Return the module of each file we ship; by name, since a file run by its path would be a twin of its module."""
    names = []
    for top_folder in TOP_FOLDERS:
        for path in sorted((ROOT / top_folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            parts = parts[1:] if top_folder == "public" else parts
            names.append(".".join(["plumbline", *(parts[:-1] if parts[-1] == "__init__" else parts)]))
    return names


@pytest.mark.parametrize("name", module_names())
def test_examples_in_docstrings(name: str):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples in {name} differ; see the output"
