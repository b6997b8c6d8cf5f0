"""The check of torch itself: says in one line which private names this torch has moved, and what that breaks.

`torch_facts` imports this file first.  A torch that is listed in TESTED_TORCH costs nothing.  For any other, every
private name that `torch_facts` mentions is looked up in its source, those inside functions included: a name that is
needed at import raises TorchChanged, one that is needed later gives a warning.  The doctor runs the same check.
"""

import ast
import importlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from .borrowed import sympy_caches  # noqa: F401  # before `torch_facts` has torch import sympy
from .errors import UserError
from .torch_versions import TESTED_TORCH, is_tested

_SOURCE = Path(__file__).with_name("torch_facts.py")


class TorchChanged(UserError, ImportError):
    """The installed torch lacks a private name that importing the compiler needs."""


@dataclass(frozen=True, slots=True)
class MissingName:
    """A name that torch no longer has.

    path: dotted, from `torch`.  reason: what of ours uses it: the comment beside it or the function that needs it.
    at_import: nothing works without it; otherwise only what `reason` names.
    """

    path: str
    reason: str
    at_import: bool

    def __str__(self) -> str:
        """Return the name and what it breaks."""
        return f"{self.path} ({self.reason})" if self.reason else self.path


def missing_names(source: str | None = None) -> list[MissingName]:
    """Return the names that `torch_facts` mentions and this torch lacks, in the order of the file.

    source: another text than that of `torch_facts`.
    """
    text = _SOURCE.read_text(encoding="utf-8") if source is None else source
    missing: dict[str, MissingName] = {}
    for use in _names_used(text):
        if use.path not in missing and not _exists(use.path):
            missing[use.path] = use
    return list(missing.values())


def require_known_torch(version: str | None = None) -> None:
    """Check a torch that was not tested: raises TorchChanged or warns if it lacks names that we use.

    version: of torch; that of the installed one if None.
    """
    current = str(torch.__version__) if version is None else version
    if is_tested(current):
        return
    missing = missing_names()
    needed = [name for name in missing if name.at_import]
    if needed:
        tested = ", ".join(TESTED_TORCH)
        raise TorchChanged(
            f"torch {current} does not have {'; '.join(map(str, needed))}",
            hint=f"install a torch that plumbline was tested with ({tested}), or a newer plumbline",
        )
    if missing:
        warnings.warn(f"torch {current} does not have {'; '.join(map(str, missing))}", stacklevel=2)


def _names_used(text: str) -> Iterator[MissingName]:
    """Yield every dotted name below `torch` that a module mentions."""
    tree = ast.parse(text)
    lines = text.splitlines()
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").split(".")[0] == "torch":
            for alias in statement.names:
                path = f"{statement.module}.{alias.name}"
                own = _comment(lines[alias.lineno - 1]) or _comment(lines[statement.lineno - 1])
                yield MissingName(path, own, at_import=True)
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.name.split(".")[0] == "torch":
                    yield MissingName(alias.name, _comment(lines[alias.lineno - 1]), at_import=True)
        elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
            for path, _ in _chains(statement):
                yield MissingName(path, f"used by {statement.name}", at_import=False)
        else:
            for path, line in _chains(statement):
                yield MissingName(path, _comment(lines[line - 1]), at_import=True)


def _chains(root: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield (dotted path, line) of the longest attribute chains on `torch` and on local names for parts of it."""
    names = {"torch": "torch"}
    for node in ast.walk(root):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            path = _path(node.value, names)
            if path is not None:
                names[node.targets[0].id] = path
    inner = {id(node.value) for node in ast.walk(root) if isinstance(node, ast.Attribute)}
    for node in ast.walk(root):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            path = _path(node, names)
            if path is not None:
                yield path, node.lineno


def _path(node: ast.AST, names: Mapping[str, str]) -> str | None:
    """Return the dotted path of an attribute chain, None for anything else."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        before = _path(node.value, names)
        return f"{before}.{node.attr}" if before is not None else None
    return None


def _exists(path: str) -> bool:
    """Return whether a dotted path leads to something: a module that imports, or attributes of one."""
    names = path.split(".")
    for end in range(len(names), 0, -1):
        try:
            owner: object = importlib.import_module(".".join(names[:end]))
        except Exception:  # not a module, one that is gone, or one that no longer imports
            continue
        try:
            for name in names[end:]:
                owner = getattr(owner, name)
        except AttributeError:
            continue
        return True
    return False


def _comment(line: str) -> str:
    _, mark, text = line.partition("# ")
    return text.strip() if mark else ""


require_known_torch()
