"""A random Python program as plain data: a module with a function `step`, and a history of statements and calls."""

import ast
from dataclasses import dataclass

from plumbline.compiler.base.errors import UserError

CALL = "step("
_HINT = "give a .json file that plumbline fuzz programs saved"


@dataclass(frozen=True, slots=True)
class PythonProgram:
    """The text of a module that defines `step`, and what happens then, one statement each.

    A statement of the history that calls `step` is a judged call; the others are changes between calls.
    """

    module: str
    history: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return what a signature mentions: the constructs of the program and the names that it does not define."""
        return constructs("\n".join((self.module, *self.history)))


def check_python_program(program: PythonProgram) -> None:
    """Raise UserError for text that is not Python or a history without a call."""
    for text in (program.module, *program.history):
        try:
            ast.parse(text)
        except SyntaxError as error:
            raise UserError("not a saved program", why=f"{error.msg}: {text[:60]!r}", hint=_HINT) from None
    if not any(CALL in text for text in program.history):
        raise UserError("not a saved program", why="its history does not call step", hint=_HINT)


_PLAIN_NODES = (ast.Name, ast.Constant, ast.expr_context, ast.Expr, ast.Module, ast.arguments, ast.arg, ast.alias)
_COMMON = frozenset({"step", "log", "append", "torch", "Import", "ImportFrom", "FunctionDef", "Return", "Assign"})


def constructs(text: str) -> tuple[str, ...]:
    """Return the kinds of syntax, the attributes and the free names in a text, sorted; none where it does not parse."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ()
    used: set[str] = set()
    stored: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else stored).add(node.id)
        elif isinstance(node, ast.arg):
            stored.add(node.arg)
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.startswith("__"):
            used.add(node.name)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            stored.add(node.name)
        if not isinstance(node, _PLAIN_NODES):
            used.add(type(node).__name__)
    return tuple(sorted(used - stored - _COMMON))
