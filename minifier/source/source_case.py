"""A candidate of the source level: one Python file, numbered node by node, and edits of it.

A program is kept as text, always as `ast.unparse` writes it, so that equal programs are equal text.  An edit names
nodes by their number in `ast.walk` order and is applied to a fresh tree: edits never see each other's changes.
"""

import ast
import builtins
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Replacement = ast.AST | list[ast.stmt] | None
"""What stands in place of a node: another node, several statements, or None for nothing."""


@dataclass(frozen=True, slots=True)
class SourceCase:
    """A whole program as text.

    after: the line of the call that failed, for passes that cut what runs later; 0 when unknown.
    """

    text: str

    def tree(self) -> ast.Module:
        """Return a fresh tree."""
        return ast.parse(self.text)

    def __len__(self) -> int:
        """Return the number of lines with code."""
        return sum(bool(line.strip()) for line in self.text.splitlines())


def source_case(text: str) -> SourceCase:
    """Return a program without comments, docstrings and annotations of functions.

    Raises SyntaxError for text that is not Python.
    """
    tree = ast.parse(text)
    _Plain().visit(tree)
    return case_of_tree(tree)


def case_of_tree(tree: ast.Module) -> SourceCase:
    """Return a tree as a case."""
    return SourceCase(ast.unparse(ast.fix_missing_locations(tree)) + "\n")


def is_program(case: SourceCase) -> bool:
    """Return whether the text is Python that compiles; `return` outside a function, for example, does not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a candidate may call a number
            compile(case.text, "<candidate>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def unbound_names(case: SourceCase) -> frozenset[str]:
    """Return the names that a program reads, and that are neither bound somewhere in it nor Python's own.

    With one more of them than before, it most likely ends with a NameError, which is cheaper to know than to see.
    """
    read: set[str] = set()
    bound: set[str] = set(dir(builtins)) | {"__name__", "__file__", "__class__"}
    for node in ast.walk(case.tree()):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.arg(arg=name):
                bound.add(name)
            case ast.alias(name=name, asname=other):
                bound.add((other or name).split(".")[0])
                if name == "*":
                    return frozenset()
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
    return frozenset(read - bound)


def numbered(tree: ast.Module) -> list[ast.AST]:
    """Return the nodes of a tree; a node's number is its place here, the same in every tree of the same text."""
    return list(ast.walk(tree))


def edited(case: SourceCase, replacements: Mapping[int, Callable[[Any], Replacement]]) -> SourceCase:
    """Return the case with numbered nodes replaced; a block that becomes empty gets `pass`, or goes if it may."""
    tree = case.tree()
    by_node = {id(node): replacements[number] for number, node in enumerate(numbered(tree)) if number in replacements}
    return case_of_tree(_Editor(by_node).visit(tree))


@dataclass(frozen=True, slots=True)
class SingleEdit:
    """One edit: nodes by number, each with what to put in its place."""

    changes: tuple[tuple[int, Callable[[Any], Replacement]], ...]

    def applied(self, case: SourceCase) -> SourceCase:
        """Return the case after this edit."""
        return edited(case, dict(self.changes))


class _Editor(ast.NodeTransformer):
    def __init__(self, replacements: Mapping[int, Callable[[Any], Replacement]]) -> None:
        self.replacements = replacements

    def visit(self, node: ast.AST) -> Any:
        """Replace a node of the list; its children are visited unless it goes."""
        change = self.replacements.get(id(node))
        visited = self.generic_visit(node)
        _fill_blocks(visited)
        return visited if change is None else change(visited)


def _fill_blocks(node: ast.AST) -> None:
    """Give an empty body a `pass`: what is empty by itself is cut as a statement of its own."""
    body = getattr(node, "body", None)
    if isinstance(body, list) and not body and not isinstance(node, ast.Module):
        node.body = [ast.Pass()]  # type: ignore[attr-defined]  # every node with a list `body`
    if isinstance(node, ast.Try) and not node.handlers and not node.finalbody:
        node.finalbody = [ast.Pass()]


class _Plain(ast.NodeTransformer):
    """Drops what no compiler reads: docstrings, and annotations of functions (those of classes make dataclasses)."""

    def visit(self, node: ast.AST) -> ast.AST:
        """Drop the docstring and the annotations of one node, after its children's."""
        self.generic_visit(node)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        return node


def blocks(node: ast.AST) -> list[Sequence[ast.stmt]]:
    """Return the lists of statements that a node holds itself."""
    names = ("body", "orelse", "finalbody")
    return [part for name in names if isinstance(part := getattr(node, name, None), list) and part]
