"""Single edits of calls: what a function of the program does, in the place of its only call.

Whether the result means the same is for the next run to say: names of the function's own may meet others.
"""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .source_case import Replacement, SingleEdit, SourceCase, numbered

LONGEST = 12
"""Statements of a function that is put in the place of a call."""


def call_edits(case: SourceCase) -> list[SingleEdit]:
    """Put what a function or method does in the place of its only call, and take the function out."""
    nodes = numbered(case.tree())
    methods = {id(part) for node in nodes if isinstance(node, ast.ClassDef) for part in node.body}
    edits = []
    for number, node in enumerate(nodes):
        if not isinstance(node, ast.FunctionDef) or node.decorator_list or not _is_plain(node):
            continue
        inside = {id(part) for part in ast.walk(node)}
        uses = [part for part in nodes if _uses(part, node.name, method=id(node) in methods)]
        calls = [at for at, part in enumerate(nodes) if isinstance(part, ast.Call) and part.func in uses]
        if len(uses) != 1 or len(calls) != 1 or id(uses[0]) in inside:
            continue
        moved = _Moved(node, is_method=id(node) in methods)
        edits += [SingleEdit(((number, _gone), change)) for change in moved.changes(nodes, calls[0])]
    return edits


def _gone(_node: object) -> None:
    return None


def _is_plain(function: ast.FunctionDef) -> bool:
    """Return whether the parameters have names and places, and nothing returns but the last statement."""
    parameters = function.args
    if parameters.vararg or parameters.kwarg or parameters.kwonlyargs or len(function.body) > LONGEST:
        return False
    inner = [part for statement in function.body for part in ast.walk(statement)]
    if any(isinstance(part, ast.Yield | ast.YieldFrom | ast.Nonlocal) for part in inner):
        return False
    return all(part is function.body[-1] for part in inner if isinstance(part, ast.Return))


def _uses(node: ast.AST, name: str, *, method: bool) -> bool:
    if method:
        return isinstance(node, ast.Attribute) and node.attr == name
    return isinstance(node, ast.Name) and node.id == name


@dataclass(frozen=True, slots=True, eq=False)
class _Moved:
    """The statements of a function, for the place of a call."""

    function: ast.FunctionDef
    is_method: bool

    def changes(self, nodes: Sequence[ast.AST], call: int) -> list[tuple[int, Callable[[Any], Replacement]]]:
        """Return how the call, or the statement that is nothing but the call, is replaced."""
        found: list[tuple[int, Callable[[Any], Replacement]]] = []
        last = self.function.body[-1]
        if len(self.function.body) == 1 and isinstance(last, ast.Return | ast.Expr | ast.Assign) and last.value:
            found.append((call, self._as_expression))
        for number, node in enumerate(nodes):
            if isinstance(node, ast.Expr | ast.Assign | ast.Return) and node.value is nodes[call]:
                found.append((number, self._as_statements))
        return found

    def _passed(self, call: ast.Call) -> dict[str, ast.expr]:
        """Return the arguments by parameter; a parameter for which nothing is passed and no default stands is left."""
        parameters = self.function.args
        names = [one.arg for one in (*parameters.posonlyargs, *parameters.args)]
        passed = dict(zip(reversed(names), reversed(parameters.defaults), strict=False))
        on = [call.func.value] if self.is_method and isinstance(call.func, ast.Attribute) else []
        passed |= dict(zip(names, [*on, *call.args], strict=False))
        return passed | {one.arg: one.value for one in call.keywords if one.arg is not None}

    def _as_expression(self, call: ast.Call) -> ast.expr:
        (statement,) = _copies(self.function.body)
        assert isinstance(statement, ast.Return | ast.Expr | ast.Assign)
        assert statement.value is not None
        result: ast.expr = _Passing(self._passed(call)).visit(statement.value)
        return result

    def _as_statements(self, statement: Any) -> list[ast.stmt]:
        call: ast.Call = statement.value
        body = _copies(self.function.body)
        written = {part.id for part in _names(body) if not isinstance(part.ctx, ast.Load)}
        before: list[ast.stmt] = []
        instead: dict[str, ast.expr] = {}
        for name, value in self._passed(call).items():
            reads = sum(part.id == name for part in _names(body))
            if name not in written and (isinstance(value, ast.Name | ast.Constant) or reads <= 1):
                instead[name] = value
            else:
                before.append(ast.Assign([ast.Name(name, ast.Store())], value))
        body = [_Passing(instead).visit(part) for part in body]
        if isinstance(body[-1], ast.Return):
            statement.value = body[-1].value or ast.Constant(None)
            body[-1:] = [statement]
        return [*before, *body]


def _names(statements: Sequence[ast.stmt]) -> list[ast.Name]:
    return [part for statement in statements for part in ast.walk(statement) if isinstance(part, ast.Name)]


def _copies(statements: Sequence[ast.stmt]) -> list[Any]:
    function = ast.parse("def f(): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = list(statements)
    (copied,) = ast.parse(ast.unparse(ast.fix_missing_locations(function))).body
    assert isinstance(copied, ast.FunctionDef)
    return copied.body


class _Passing(ast.NodeTransformer):
    """Puts arguments in the place of parameters."""

    def __init__(self, passed: dict[str, ast.expr]) -> None:
        self.passed = passed

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.passed.get(node.id, node) if isinstance(node.ctx, ast.Load) else node
