"""Programs that compile a child in the place of the whole module: a large step for what many modules surround."""

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .child_calls import ChildCall
from .source_case import Replacement, SourceCase, case_of_tree, edited, numbered

_COMPILES = ("plumbline.compile", "torch.compile")
MOST_CHILDREN = 24
"""Programs that are tried; the children of a module are few where those that are alike count once."""


def child_programs(case: SourceCase, calls: Iterable[ChildCall]) -> list[SourceCase]:
    """Return the programs that compile a child, the smallest child first; none where it is not clear what is compiled.

    calls: of the children of what the program compiles.  Where it compiles nothing itself, as under the judge's plugin,
    that is a module that it calls.
    """
    nodes = numbered(case.tree())
    compiles = [number for number, node in enumerate(nodes) if _is_compile(node)]
    if len(compiles) > 1:
        return []
    wholes = [_compiled(nodes, number) for number in compiles] or list(_called_modules(nodes))
    programs = []
    for call in calls:
        for whole, changed in wholes:
            for module, home in _modules(call, whole, nodes) if changed else ():
                changes = {number: change(module, call.arguments) for number, change in changed.items()}
                programs.append(_importing(edited(case, changes), home))
    return programs[:MOST_CHILDREN]


Change = Callable[[str, str], Callable[[Any], Replacement]]
"""What becomes of a node, given the expressions of a child and of its arguments."""


def _compiled(nodes: list[ast.AST], number: int) -> tuple[ast.expr, dict[int, Change]]:
    """Return what one call of a compiler compiles, and what changes: that call, and those of what it returns."""
    compiled = nodes[number]
    assert isinstance(compiled, ast.Call)
    called = [
        at for at, node in enumerate(nodes) if isinstance(node, ast.Call) and _is_result(node.func, compiled, nodes)
    ]
    changes: dict[int, Change] = {number: lambda module, _: _compiling(module)}
    changes |= dict.fromkeys(called, lambda _, arguments: _passing(arguments))
    return compiled.args[0], changes if called else {}


def _called_modules(nodes: list[ast.AST]) -> Iterator[tuple[ast.expr, dict[int, Change]]]:
    """Yield names of what the program has made by a call and calls itself, and what changes: those calls."""
    made = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for name in sorted(made):
        called = {
            number: node.func
            for number, node in enumerate(nodes)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        }
        if called:
            yield next(iter(called.values())), dict.fromkeys(called, _calling)


def _is_compile(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in _COMPILES and len(node.args) == 1


def _is_result(function: ast.expr, compiled: ast.Call, nodes: list[ast.AST]) -> bool:
    """Return whether what is called is what the compiler returned, by itself or by the name that was given to it."""
    if isinstance(function, ast.Name):
        return any(
            isinstance(node, ast.Assign) and node.value is compiled and ast.unparse(node.targets[0]) == function.id
            for node in nodes
        )
    return function is compiled


def _modules(call: ChildCall, whole: ast.expr, nodes: list[ast.AST]) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """Yield expressions of a child, the plainest first, each with what it needs to import."""
    mode = "" if call.training else ".eval()"
    if call.made:
        yield f"{call.made}{mode}", None
        return  # what differs by its weights alone is no other program
    if call.home is not None and not call.configured:
        yield f"{call.home[1]}(){mode}", call.home
    elif call.home is not None:
        for config in _configurations(whole, nodes):
            yield f"{call.home[1]}({config}){mode}", call.home
    yield f"{ast.unparse(whole)}.get_submodule({call.path!r})", None


def _configurations(whole: ast.expr, nodes: list[ast.AST]) -> Iterator[str]:
    """Yield what the whole module is made from: the only argument of a call in its expression."""
    values = [node.value for node in nodes if isinstance(node, ast.Assign) and _names(node, whole)]
    for made in (whole, *values):
        for node in ast.walk(made):
            if isinstance(node, ast.Call) and not node.keywords and _is_one_value(node.args):
                yield ast.unparse(node.args[0])


def _is_one_value(arguments: list[ast.expr]) -> bool:
    return len(arguments) == 1 and not isinstance(arguments[0], ast.Constant | ast.Starred)


def _names(statement: ast.Assign, whole: ast.expr) -> bool:
    return isinstance(whole, ast.Name) and ast.unparse(statement.targets[0]) == whole.id


def _compiling(module: str) -> Callable[[ast.Call], ast.Call]:
    def change(call: ast.Call) -> ast.Call:
        call.args = [ast.parse(module, mode="eval").body]
        return call

    return change


def _calling(module: str, arguments: str) -> Callable[[ast.Call], ast.Call]:
    def change(call: ast.Call) -> ast.Call:
        call.func = ast.parse(module, mode="eval").body
        return _passing(arguments)(call)

    return change


def _passing(arguments: str) -> Callable[[ast.Call], ast.Call]:
    def change(call: ast.Call) -> ast.Call:
        given = ast.parse(f"f({arguments})", mode="eval").body
        assert isinstance(given, ast.Call)
        call.args, call.keywords = given.args, given.keywords
        return call

    return change


def _importing(case: SourceCase, home: tuple[str, str] | None) -> SourceCase:
    """Return the program with what the child needs imported at its top."""
    tree = case.tree()
    names = [ast.Import([ast.alias("torch")])]
    more = [] if home is None else [ast.ImportFrom(home[0], [ast.alias(home[1])], 0)]
    texts = {ast.unparse(statement) for statement in tree.body}
    new: list[ast.stmt] = [one for one in (*names, *more) if ast.unparse(one) not in texts]
    later = [place for place, one in enumerate(tree.body) if not _is_future(one)]
    place = later[0] if later else len(tree.body)
    tree.body[place:place] = new
    return case_of_tree(tree)


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
