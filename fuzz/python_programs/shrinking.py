"""Smaller variants of a program: statements, whole definitions and parts of expressions removed, largest first."""

import ast
from collections.abc import Callable, Iterator
from typing import Any

from .python_program import CALL, PythonProgram

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
Edit = Callable[[ast.AST], None]


def simpler_python_programs(program: PythonProgram) -> Iterator[PythonProgram]:
    """Return variants with less: calls and changes, then statements, then expressions; none may be valid Python."""
    yield from _without_unused(program)
    yield from _shorter_histories(program)
    for text in _shorter_steps(program.module):
        yield PythonProgram(text, program.history)
    for text in _smaller_texts(program.module):
        if "def step(" in text:
            yield PythonProgram(text, program.history)
    for position, statement in enumerate(program.history):
        for text in _smaller_texts(statement):
            if CALL in text or CALL not in statement:
                yield PythonProgram(program.module, _replaced(program.history, position, text.strip()))


def _replaced(history: tuple[str, ...], position: int, text: str) -> tuple[str, ...]:
    return (*history[:position], text, *history[position + 1 :])


def _without_unused(program: PythonProgram) -> Iterator[PythonProgram]:
    """Return the program without definitions at the top that neither `step` nor the history reaches."""
    tree = ast.parse(program.module)
    needed = {"step", *_names(ast.parse("\n".join(program.history)))}
    kept: list[ast.stmt] = []
    for statement in reversed(tree.body):
        if not isinstance(statement, ast.Expr) and not _defined(statement) & needed:
            continue
        if not isinstance(statement, ast.Expr) or _names(statement) & needed:
            kept.insert(0, statement)
            needed |= _names(statement)
    if len(kept) < len(tree.body):
        yield PythonProgram(ast.unparse(ast.Module(kept, [])), program.history)


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _defined(statement: ast.stmt) -> set[str]:
    """Return the names that a statement at the top defines."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _shorter_histories(program: PythonProgram) -> Iterator[PythonProgram]:
    history = program.history
    for start, stop in _chunks(len(history)):
        rest = history[:start] + history[stop:]
        if any(CALL in statement for statement in rest):
            yield PythonProgram(program.module, rest)


def _chunks(length: int) -> Iterator[tuple[int, int]]:
    """Return the ranges that may be removed from so many parts, from half of them down to one, the last ones first."""
    size = length
    while size:
        for start in range(length - size, -1, -size):
            yield start, start + size
        size //= 2


def _shorter_steps(text: str) -> Iterator[str]:
    """Return the module with a run of statements of `step` less, those in blocks counted like the others.

    A block that loses all it has keeps `pass`, so nothing comes of one that has no more.
    """
    before = ast.unparse(ast.parse(text))
    count = len(_statements_of_step(ast.parse(text)))
    for start, stop in _chunks(count):
        tree = ast.parse(text)
        removed = {id(statement) for statement in _statements_of_step(tree)[start:stop]}
        for node in ast.walk(tree):
            for name in _BODIES:
                body = getattr(node, name, None)
                if isinstance(body, list) and any(id(part) in removed for part in body):
                    kept = [part for part in body if id(part) not in removed]
                    setattr(node, name, kept or ([ast.Pass()] if name == "body" else []))
        shorter = ast.unparse(tree)
        if shorter != before:
            yield shorter


def _statements_of_step(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements of `step` in the order of its text, without what it returns at its end."""
    step = next(part for part in tree.body if isinstance(part, ast.FunctionDef) and part.name == "step")
    inside = [node for part in step.body[:-1] for node in ast.walk(part) if isinstance(node, ast.stmt)]
    return sorted(inside, key=lambda node: (node.lineno, node.col_offset))


def _smaller_texts(text: str) -> Iterator[str]:
    """Return variants of a text; each is written from a tree of its own, so that edits do not meet."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    known = {ast.unparse(tree)}
    for number, node in enumerate(ast.walk(tree)):
        for edit in _statement_edits(node):
            yield from _edited(text, number, edit, known)
    for number, node in enumerate(ast.walk(tree)):
        for edit in _expression_edits(node):
            yield from _edited(text, number, edit, known)


def _edited(text: str, number: int, edit: Edit, known: set[str]) -> Iterator[str]:
    tree = ast.parse(text)
    edit(next(node for position, node in enumerate(ast.walk(tree)) if position == number))
    try:
        changed = ast.unparse(ast.fix_missing_locations(tree))
        ast.parse(changed)
    except (SyntaxError, ValueError, AttributeError, TypeError):
        return
    if changed not in known:
        known.add(changed)
        yield changed


def _statement_edits(node: ast.AST) -> Iterator[Edit]:
    for name in _BODIES:
        body = getattr(node, name, None)
        if not isinstance(body, list):
            continue
        for start, stop in _chunks(len(body)):
            yield _removal(name, start, stop)
        for position, inner in enumerate(body):
            for field in _BODIES:
                parts = getattr(inner, field, None)
                if isinstance(parts, list) and parts and not isinstance(inner, ast.FunctionDef | ast.ClassDef):
                    yield _lifting(name, position, field)


def _removal(name: str, start: int, stop: int) -> Edit:
    def edit(node: Any) -> None:
        body = getattr(node, name)
        del body[start:stop]
        if not body and name == "body":
            body.append(ast.Pass())

    return edit


def _lifting(name: str, position: int, field: str) -> Edit:
    """Replace a statement by one of its blocks."""

    def edit(node: Any) -> None:
        inner = getattr(node, name)[position]
        parts = [part for one in getattr(inner, field) for part in (one.body if hasattr(one, "pattern") else [one])]
        getattr(node, name)[position : position + 1] = parts

    return edit


_LISTS = (
    *("args", "keywords", "elts", "decorator_list", "bases", "generators", "ifs", "values", "targets", "items"),
    *("defaults", "kw_defaults", "kwonlyargs", "posonlyargs", "comparators", "names", "patterns"),
)


def _expression_edits(node: ast.AST) -> Iterator[Edit]:
    for name, value in ast.iter_fields(node):
        if isinstance(value, list) and name in _LISTS:
            for position in range(len(value)):
                yield _deletion(name, position)
        if isinstance(value, ast.expr):
            for _, inner in _inner_expressions(value):
                yield _promotion(name, inner)
            if not isinstance(value, ast.Constant | ast.Name):
                yield _constant(name, 1)
        if isinstance(value, list):
            for position, part in enumerate(value):
                if isinstance(part, ast.expr):
                    yield from (_promotion_at(name, position, inner) for _, inner in _inner_expressions(part))
                    if not isinstance(part, ast.Constant | ast.Name):
                        yield _constant_at(name, position, 1)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value not in (0, 1):
        yield _set_value(1)
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > 1:
        yield _set_value("a")


def _inner_expressions(node: ast.expr) -> list[tuple[str, int]]:
    """Return the numbers of the direct parts of an expression that are expressions themselves."""
    return [("", number) for number, part in enumerate(ast.iter_child_nodes(node)) if isinstance(part, ast.expr)]


def _child(node: ast.AST, number: int) -> ast.AST:
    return list(ast.iter_child_nodes(node))[number]


def _deletion(name: str, position: int) -> Edit:
    return lambda node: getattr(node, name).pop(position)


def _promotion(name: str, inner: int) -> Edit:
    return lambda node: setattr(node, name, _child(getattr(node, name), inner))


def _promotion_at(name: str, position: int, inner: int) -> Edit:
    def edit(node: Any) -> None:
        parts = getattr(node, name)
        parts[position] = _child(parts[position], inner)

    return edit


def _constant(name: str, value: int) -> Edit:
    return lambda node: setattr(node, name, ast.Constant(value))


def _constant_at(name: str, position: int, value: int) -> Edit:
    def edit(node: Any) -> None:
        getattr(node, name)[position] = ast.Constant(value)

    return edit


def _set_value(value: object) -> Edit:
    return lambda node: setattr(node, "value", value)
