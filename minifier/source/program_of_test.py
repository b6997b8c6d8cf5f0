"""A pytest test as a plain program: its module, then the call with its parameters and fixtures."""

import ast
import contextlib
import inspect
import io
import unittest
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from plumbline.compiler.base.errors import UserError

from ..import_path import import_path


@dataclass(frozen=True, slots=True)
class Program:
    """text: Python.  folder: where its own modules are.  seed: of its random numbers."""

    text: str
    folder: str
    seed: int = 0


def program_of_case(case: str) -> Program:
    """Return the program of a script or a pytest node id; raises UserError where there is none."""
    file = Path(case.split("::")[0])
    folder = str(file.resolve().parent)
    text = file.read_text(encoding="utf-8")
    if "::" not in case:
        return Program(_started(text), folder)
    item = _collected(case)
    written = "\n".join([*_fixture_functions(item), text, *_call_lines(item)])
    return Program(written, folder, zlib.crc32(item.nodeid.encode("utf-8", "surrogatepass")))


def _started(text: str) -> str:
    """Take `if __name__ == "__main__":` for true: the program runs under another name here."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) and "__main__" in ast.unparse(node.test):
            node.test = ast.Constant(True)
    return ast.unparse(tree)


class _Collector:
    """A pytest plugin that keeps what was collected."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        self.items = list(items)


def _collected(node_id: str) -> Any:
    collector, output = _Collector(), io.StringIO()
    arguments = [node_id, "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist"]
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        pytest.main(arguments, plugins=[collector])
    if len(collector.items) != 1:
        what = "selects no test" if not collector.items else f"selects {len(collector.items)} tests"
        raise UserError(what, where=node_id, hint="name one test, with its parameters")
    return collector.items[0]


def _fixture_functions(item: Any) -> list[str]:
    """Return fixtures of conftest files as plain functions; those of the test's own module are in its text."""
    texts = []
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        function = inspect.unwrap(definitions[-1].func)
        own = inspect.getsourcefile(function) == str(item.path)
        if not own and import_path(function) is None and "conftest" in str(inspect.getsourcefile(function)):
            texts.append(Path(str(inspect.getsourcefile(function))).read_text(encoding="utf-8"))
    return list(dict.fromkeys(texts))


_BUILT_IN = {
    "monkeypatch": "pytest.MonkeyPatch()",
    "tmp_path": "__import__('pathlib').Path(__import__('tempfile').mkdtemp())",
}


def _call_lines(item: Any) -> list[str]:
    """Return the statements that do what pytest does for this test: fixtures, setup, the call."""
    lines = [
        "import pytest",
        "",
        "def _plain(fixture):",
        "    return getattr(fixture, '__wrapped__', None) or getattr(fixture, '_fixture_function', fixture)",
    ]
    lines += ["def _value(made):", "    return next(made) if hasattr(made, '__next__') else made"]
    known: dict[str, str] = {}
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    for name in item.fixturenames:
        if name in parameters and _is_direct(item, name):
            known[name] = _parameter(item, name, parameters[name])
        elif name != "request":
            known[name] = _fixture(item, name, known)
    arguments = ", ".join(f"{name}={known[name]}" for name in item._fixtureinfo.argnames if name in known)
    if item.cls is None:
        return [*lines, f"{item.originalname}({arguments})"]
    if issubclass(item.cls, unittest.IsolatedAsyncioTestCase):  # unittest's own way to run one test
        return [*lines, f"{item.cls.__qualname__}({item.originalname!r}).debug()"]
    if issubclass(item.cls, unittest.TestCase):  # step by step, of which each may go
        made = [f"{item.cls.__qualname__}.setUpClass()", f"_test = {item.cls.__qualname__}({item.originalname!r})"]
        return [*lines, *made, "_test.setUp()", f"_test.{item.originalname}()"]
    class_setup = [f"{item.cls.__qualname__}.setup_class()"] if hasattr(item.cls, "setup_class") else []
    takes_one = hasattr(item.cls, "setup_method") and len(inspect.signature(item.cls.setup_method).parameters) > 1
    method = f"_test.{item.originalname}" if takes_one else ""
    setup = [f"_test.setup_method({method})"] if hasattr(item.cls, "setup_method") else []
    return [
        *lines,
        *class_setup,
        f"_test = {item.cls.__qualname__}()",
        *setup,
        f"_test.{item.originalname}({arguments})",
    ]


def _is_direct(item: Any, name: str) -> bool:
    """Return whether a parameter goes to the test itself and not to a fixture of this name."""
    definitions = item._fixtureinfo.name2fixturedefs.get(name)
    return not definitions or str(definitions[-1].func.__module__).startswith("_pytest")


def _parameter(item: Any, name: str, value: object) -> str:
    """Return an expression for a parameter: its literal, its name in a package, or its place in the mark."""
    with contextlib.suppress(ValueError, SyntaxError, TypeError, MemoryError):
        if ast.literal_eval(repr(value)) == value:
            return repr(value)
    if type(value).__module__ == "torch" and repr(value).startswith("torch."):
        return repr(value)
    path = import_path(value) if callable(value) else None
    if path is not None:
        return f"__import__('importlib').import_module({path[0]!r}).{path[1]}"
    function = item.originalname if item.cls is None else f"{item.cls.__qualname__}.{item.originalname}"
    for number, mark in enumerate(item.function.pytestmark):
        names = mark.args[0] if mark.name == "parametrize" else ()
        names = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
        if name in names:
            for row, given in enumerate(mark.args[1]):
                values = getattr(given, "values", None) or (given if len(names) > 1 else (given,))
                if values[names.index(name)] is value:
                    whole = f"{function}.pytestmark[{number}].args[1][{row}]"
                    whole = f"getattr({whole}, 'values', {whole})"
                    return f"{whole}[{names.index(name)}]" if len(names) > 1 else f"({whole})"
    raise UserError(f"the parameter {name} cannot be written", where=item.nodeid, hint="write the test's call by hand")


def _fixture(item: Any, name: str, known: dict[str, str]) -> str:
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    if _is_direct(item, name):
        return "None"  # a fixture of pytest's own, which the program may not need
    definition = item._fixtureinfo.name2fixturedefs[name][-1]
    given = ", ".join(f"{one}={known[one]}" for one in definition.argnames if one in known)
    function = definition.func.__name__
    owner = "" if "." not in definition.func.__qualname__ else "_test."
    if "request" in definition.argnames:
        value = (
            repr(item.callspec.params[name]) if hasattr(item, "callspec") and name in item.callspec.params else "None"
        )
        request = f"request=type('Request', (), {{'param': {value}}})"
        given = f"{given}, {request}" if given else request
    return f"_value(_plain({owner}{function})({given}))"
