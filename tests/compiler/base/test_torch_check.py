"""The check of torch: it sees every private name that torch_facts uses, and names the one that is gone."""

import ast

import pytest

from plumbline.compiler.base import torch_check
from plumbline.compiler.base.torch_check import TorchChanged, missing_names, require_known_torch
from plumbline.compiler.base.torch_versions import TESTED_TORCH, is_tested, precedes

SOURCE = torch_check._SOURCE.read_text(encoding="utf-8")


def test_the_installed_torch_has_every_name():
    assert missing_names() == []


@pytest.mark.parametrize(
    ("version", "tested"), [("2.13.0+cpu", True), ("2.13.1", True), ("2.1.0", False), ("3.0.0a0+git1", False)]
)
def test_a_release_is_tested_whatever_its_build(version, tested):
    assert is_tested(version) is tested


def private_mentions():
    """Every identifier with a leading underscore in an import from torch, or behind a dot, in torch_facts."""
    for node in ast.walk(ast.parse(SOURCE)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("torch.") and node.attr.startswith("_"):
            yield node.attr


def test_no_private_name_escapes_the_check():
    names = set(private_mentions()) - {"_C"}
    assert len(names) > 60
    looked_up = {part for use in torch_check._names_used(SOURCE) for part in use.path.split(".")}
    assert names <= looked_up


def test_a_missing_name_says_what_it_breaks():
    text = "import torch\nfrom torch._ops import Gone  # targets of a graph\ndef peek():\n    return torch._C._gone()\n"
    needed, later = missing_names(text)
    assert (str(needed), needed.at_import) == ("torch._ops.Gone (targets of a graph)", True)
    assert (str(later), later.at_import) == ("torch._C._gone (used by peek)", False)


def test_a_chain_through_a_local_name_is_followed():
    text = "import torch\ndef peek():\n    functorch = torch._C._functorch\n    return functorch.gone()\n"
    assert [missing.path for missing in missing_names(text)] == ["torch._C._functorch.gone"]


def broken_facts(monkeypatch, tmp_path, text):
    file = tmp_path / "facts.py"
    file.write_text(text)
    monkeypatch.setattr(torch_check, "_SOURCE", file)


def test_an_unknown_torch_that_lacks_a_name_is_refused_in_one_line(monkeypatch, tmp_path):
    broken_facts(monkeypatch, tmp_path, "from torch._ops import Gone  # targets of a graph\n")
    with pytest.raises(TorchChanged) as raised:
        require_known_torch("9.0.0")
    assert isinstance(raised.value, ImportError)
    assert str(raised.value) == (
        "torch 9.0.0 does not have torch._ops.Gone (targets of a graph); "
        f"install a torch that plumbline was tested with ({', '.join(TESTED_TORCH)}), or a newer plumbline"
    )


def test_an_unknown_torch_that_lacks_a_name_of_one_function_gives_a_warning(monkeypatch, tmp_path):
    broken_facts(monkeypatch, tmp_path, "import torch\ndef peek():\n    return torch._C._gone()\n")
    with pytest.warns(UserWarning, match=r"torch 9.0.0 does not have torch._C._gone \(used by peek\)"):
        require_known_torch("9.0.0")


def test_an_unknown_torch_with_every_name_and_a_tested_one_pass(monkeypatch, tmp_path):
    require_known_torch("9.0.0")
    broken_facts(monkeypatch, tmp_path, "from torch._ops import Gone\n")
    require_known_torch(f"{TESTED_TORCH[0]}.1")


@pytest.mark.parametrize(
    ("version", "release", "older"),
    [("2.9.1", "2.11", True), ("2.11.0+cpu", "2.13", True), ("2.13.0a0+git1", "2.13", False), ("3.0", "2.13", False)],
)
def test_which_release_came_first(version, release, older):
    assert precedes(version, release) is older
