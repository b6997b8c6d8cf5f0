"""The boundary at collection time: every call in the test files asks the boundary for its callee.

`f(x)` becomes `boundary(f)(x)`: the call itself is still made by the user's frame, so that `super()`,
`locals()` and friends see what they always see.  Functions get new code objects in place; no file is written.
"""

import ast
import gc
import sys
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion.rewrite import rewrite_asserts

HELPER = "@plumbline_boundary"  # not an identifier, so that it cannot clash with a name of the user
_OPERATORS = ("Add", "Sub", "Mult", "MatMult", "Div", "Pow")  # those of written_operators.py
_PYTEST_NAMES = ("@pytest_ar", "@py_builtins")
_FOLDER_NAMES = ("test", "tests", "testing", "unit_tests")
_RUNNERS = ("builtins", "unittest", "torch")
_IMPLICIT = ("super", "locals", "globals", "vars", "dir", "isinstance", "len")  # never judged, and some look around


CodeKey = tuple[object, ...]


class BoundaryCalls(ast.NodeTransformer):
    """Puts the boundary in front of every callee, and in place of operators; line and column numbers stay."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite one call, and the calls inside it."""
        self.generic_visit(node)
        if _is_assertion_helper(node.func) or _is_implicit(node.func):
            return node
        helper = ast.copy_location(ast.Name(HELPER, ast.Load()), node.func)
        node.func = ast.copy_location(ast.Call(helper, [node.func], []), node.func)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Rewrite one operator, and the calls in its operands."""
        self.generic_visit(node)
        name = type(node.op).__name__
        if name not in _OPERATORS:
            return node
        helper = ast.Attribute(ast.Name(HELPER, ast.Load()), "operate", ast.Load())
        call = ast.Call(helper, [ast.Constant(name), node.left, node.right], [])
        for part in (call, helper, helper.value, call.args[0]):
            ast.copy_location(part, node)
        return call


def _is_assertion_helper(callee: ast.expr) -> bool:
    return isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name) and callee.value.id in _PYTEST_NAMES


def _is_implicit(callee: ast.expr) -> bool:
    return isinstance(callee, ast.Name) and callee.id in _IMPLICIT


class CallRewriter:
    """Puts the boundary into the functions of test files, once per run, and removes it."""

    def __init__(self, config: pytest.Config, kinds: Iterable[str]) -> None:
        self._config = config
        self._kinds = frozenset(kinds)
        self._swapped: list[tuple[types.FunctionType, types.CodeType]] = []
        self._namespaces: list[dict[str, Any]] = []

    def rewrite(self, items: Iterable[pytest.Item]) -> None:
        """Rewrite the files of these items and all loaded conftests."""
        from .call_boundary import CallBoundary  # imports torch, which tests may import first

        modules = {module.__file__: module for module in self._test_modules(items) if module.__file__}
        boundary = CallBoundary(frozenset(modules), self._kinds)
        functions = _functions_by_file(frozenset(modules))
        for path, module in modules.items():
            codes = self._new_codes(Path(path), module)
            module.__dict__[HELPER] = boundary
            self._namespaces.append(module.__dict__)
            for function in functions.get(path, ()):
                self._give(function, codes)

    def undo(self) -> None:
        """Give every function its own code again."""
        for function, code in self._swapped:
            function.__code__ = code
        for namespace in self._namespaces:
            namespace.pop(HELPER, None)
        self._swapped.clear()
        self._namespaces.clear()

    def _test_modules(self, items: Iterable[pytest.Item]) -> Iterator[types.ModuleType]:
        """Yield the modules of items, and what this session has loaded of test files beside them and of conftests.

        Another session in this process, as where pytest tests plugins, has test files of its own.
        """
        files = set[Path]()
        for item in items:
            module = getattr(item, "module", None)
            if isinstance(module, types.ModuleType):
                files.add(Path(str(module.__file__)))
                yield module
            yield from _modules_of_inherited_tests(getattr(item, "cls", None))
        folders = {folder for file in files for folder in _test_folders(file)}
        around = {self._config.rootpath, *(file.parent for file in files)}
        patterns = self._config.getini("python_files")
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if not isinstance(path, str) or "site-packages" in path:
                continue
            file = Path(path)
            is_named = file.name == "conftest.py" or any(file.match(pattern) for pattern in patterns)
            is_near = not around.isdisjoint(file.parents) or any(file.parent in one.parents for one in files)
            if not folders.isdisjoint(file.parents) or (is_named and is_near):
                yield module

    def _new_codes(self, path: Path, module: types.ModuleType) -> dict[CodeKey, types.CodeType | None]:
        """Return new code by its key; None where two functions share it."""
        try:
            source = path.read_bytes()
            tree = ast.parse(source, str(path))
        except (OSError, SyntaxError, ValueError):
            return {}  # no source to read: its calls stay as they are
        if _PYTEST_NAMES[0] in module.__dict__:
            rewrite_asserts(tree, source, str(path), self._config)
        rewritten = BoundaryCalls().visit(tree)
        codes: dict[CodeKey, types.CodeType | None] = {}
        for code in _nested_codes(compile(rewritten, str(path), "exec", dont_inherit=True)):
            key = code_key(code)
            codes[key] = None if key in codes else code
        return codes

    def _give(self, function: types.FunctionType, codes: dict[CodeKey, types.CodeType | None]) -> None:
        old = function.__code__
        new = codes.get(code_key(old))
        # The same variables mean the same function: a file edited since it was imported has others.
        if (
            new is not None
            and new.co_freevars == old.co_freevars
            and new.co_varnames[: _arguments(old)] == (old.co_varnames[: _arguments(old)])
        ):
            self._swapped.append((function, old))
            function.__code__ = new


def code_key(code: types.CodeType) -> CodeKey:
    """Return what a code is known by among those of its file: name and line, and for a lambda where its body ends."""
    if code.co_name != "<lambda>":
        return code.co_qualname, code.co_firstlineno
    ends = ((line, column) for _, line, _, column in code.co_positions() if line is not None and column is not None)
    return code.co_qualname, code.co_firstlineno, max(ends, default=None)


def _modules_of_inherited_tests(owner: type | None) -> Iterator[types.ModuleType]:
    """Yield the modules whose classes hand tests down to this one: a package may keep them among its sources."""
    for base in getattr(owner, "__mro__", ()):
        home = str(base.__module__)
        if home.partition(".")[0] not in _RUNNERS and any(name.startswith("test") for name in vars(base)):
            module = sys.modules.get(home)
            if isinstance(module, types.ModuleType):
                yield module


def _test_folders(path: Path) -> list[Path]:
    """Return the folders around a test file that are named for tests."""
    return [folder for folder in path.parents if folder.name in _FOLDER_NAMES]


def _functions_by_file(paths: frozenset[str]) -> dict[str, list[types.FunctionType]]:
    # The collector knows every function, those in decorators and closures too.
    functions: dict[str, list[types.FunctionType]] = {}
    for thing in gc.get_objects():
        if type(thing) is types.FunctionType and thing.__code__.co_filename in paths:
            functions.setdefault(thing.__code__.co_filename, []).append(thing)
    return functions


def _nested_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _nested_codes(constant)


def _arguments(code: types.CodeType) -> int:
    return code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
