"""The single edits of a program: each takes one thing out of it, or makes one thing plainer.

They are the steps of the reduction and also the meaning of its result: a program is 1-minimal if every one of its
single edits gives a program that no longer fails in the same way.
"""

import ast
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

from .call_edits import call_edits
from .source_case import Replacement, SingleEdit, SourceCase, blocks, numbered

EditsOf = Callable[[SourceCase], list[SingleEdit]]


def _edit(number: int, change: Callable[[Any], Replacement]) -> SingleEdit:
    return SingleEdit(((number, change),))


def _gone(_node: object) -> None:
    return None


def statement_edits(case: SourceCase) -> list[SingleEdit]:
    """Take out one statement, those that stand last first; also a handler, and a branch `else` or `finally`."""
    nodes = numbered(case.tree())
    parts = [(getattr(node, "lineno", 0), number) for number, node in enumerate(nodes) if _is_statement(node)]
    removed = [_edit(number, _gone) for _, number in sorted(parts, reverse=True)]
    return removed + [_edit(number, change) for number, node in enumerate(nodes) for change in _branches_off(node)]


def _is_statement(node: ast.AST) -> bool:
    return isinstance(node, ast.stmt | ast.ExceptHandler) and not isinstance(node, ast.Pass)


def _branches_off(node: ast.AST) -> Iterator[Callable[[Any], Replacement]]:
    if isinstance(node, ast.If | ast.For | ast.While | ast.Try) and node.orelse:
        yield lambda part: _with(part, orelse=[])
    if isinstance(node, ast.Try) and node.finalbody and node.handlers:
        yield lambda part: _with(part, finalbody=[])


def _with(node: Any, **fields: object) -> Any:
    for name, value in fields.items():
        setattr(node, name, value)
    return node


def block_edits(case: SourceCase) -> list[SingleEdit]:
    """Put the statements of one block in its place: of an `if`, a loop (once), a `with` or a `try`."""
    nodes = numbered(case.tree())
    return [_edit(number, change) for number, node in enumerate(nodes) for change in _unwrappings(node)]


def _unwrappings(node: ast.AST) -> Iterator[Callable[[Any], Replacement]]:
    if isinstance(node, ast.If | ast.While | ast.With | ast.Try):
        yield lambda block: block.body
    if isinstance(node, ast.With):
        yield _entered
    if isinstance(node, ast.If | ast.Try) and node.orelse:
        yield lambda block: block.orelse
    if isinstance(node, ast.Try):
        yield lambda block: [*block.body, *block.orelse, *block.finalbody]
    if isinstance(node, ast.For):
        yield _first_round


def _entered(block: ast.With) -> list[ast.stmt]:
    """Keep what a `with` binds, without the block: `with f() as x` becomes `x = f()`."""
    bound = [item for item in block.items if item.optional_vars is not None]
    targets = [ast.Assign([item.optional_vars], item.context_expr) for item in bound if item.optional_vars is not None]
    return [*targets, *block.body]


def _first_round(loop: ast.For) -> list[ast.stmt]:
    first = ast.Call(ast.Name("next", ast.Load()), [ast.Call(ast.Name("iter", ast.Load()), [loop.iter], [])], [])
    return [ast.Assign([loop.target], first), *loop.body]


def expression_edits(case: SourceCase) -> list[SingleEdit]:
    """Put a part of an expression in the place of the whole, outer expressions first."""
    nodes = numbered(case.tree())
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    edits = []
    for number, node in enumerate(nodes):
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            for place, part in enumerate(_parts(node)):
                if not (id(node) in called and isinstance(part, ast.Constant)):
                    edits.append(_edit(number, partial(_part_at, place=place)))
    return edits


def parts_of_calls(case: SourceCase, names: Collection[str]) -> list[SingleEdit]:
    """Put an argument in the place of each call of one of these functions."""
    edits = []
    for number, node in enumerate(numbered(case.tree())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[0] in names:
            edits += [_edit(number, partial(_part_at, place=place)) for place in range(len(_parts(node)))]
    return edits


def _part_at(whole: ast.expr, place: int) -> ast.expr:
    return _parts(whole)[place]


def _parts(node: Any) -> list[ast.expr]:
    """Return the expressions inside one that could stand for it."""
    match node:
        case ast.BinOp():
            found = [node.left, node.right]
        case ast.UnaryOp():
            found = [node.operand]
        case ast.BoolOp():
            found = node.values
        case ast.Compare():
            found = [node.left, *node.comparators]
        case ast.IfExp():
            found = [node.body, node.orelse]
        case ast.Call(ast.Name("next"), [ast.Call(ast.Name("iter"), [ast.List(elts=[first, *_])])]):
            found = [first]
        case ast.Call():
            of = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            found = [*of, *node.args, *(keyword.value for keyword in node.keywords)] or [ast.Constant(0)]
        case ast.Attribute() | ast.Subscript():
            found = [node.value, ast.Constant(1)]
        case ast.Starred() | ast.NamedExpr() | ast.Await():
            found = [node.value]
        case ast.Tuple() | ast.List() if len(node.elts) == 1:
            found = node.elts
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            found = [ast.List([node.elt], ast.Load())]
        case _:
            found = []
    return [part for part in found if not isinstance(part, ast.Starred)]


def element_edits(case: SourceCase) -> list[SingleEdit]:
    """Take out one argument of a call, element of a display, decorator, base, default, target or name of an import."""
    edits = []
    for number, node in enumerate(numbered(case.tree())):
        for name in _LISTS.get(type(node), ()):
            for place in reversed(range(len(getattr(node, name)))):
                edits.append(_edit(number, partial(_without, name=name, place=place)))
    return edits


_LISTS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Call: ("keywords", "args"),
    ast.Tuple: ("elts",),
    ast.List: ("elts",),
    ast.Set: ("elts",),
    ast.Dict: ("keys",),
    ast.BoolOp: ("values",),
    ast.FunctionDef: ("decorator_list",),
    ast.AsyncFunctionDef: ("decorator_list",),
    ast.ClassDef: ("decorator_list", "bases", "keywords"),
    ast.With: ("items",),
    ast.Import: ("names",),
    ast.ImportFrom: ("names",),
    ast.JoinedStr: ("values",),
    ast.Delete: ("targets",),
    ast.Global: ("names",),
    ast.Nonlocal: ("names",),
}


def _without(node: Any, name: str, place: int) -> Any:
    rest = [part for number, part in enumerate(getattr(node, name)) if number != place]
    if isinstance(node, ast.Dict):
        node.values = [part for number, part in enumerate(node.values) if number != place]
    if not rest and isinstance(node, ast.With):
        return node.body
    if not rest and isinstance(node, ast.Import | ast.ImportFrom | ast.Delete | ast.Global | ast.Nonlocal):
        return None
    if isinstance(node, ast.BoolOp) and len(rest) == 1:
        return rest[0]
    setattr(node, name, rest)
    return node


def parameter_edits(case: SourceCase) -> list[SingleEdit]:
    """Take out one parameter that its function does not read, and what calls by that name pass for it."""
    tree = case.tree()
    nodes = numbered(tree)
    owners = {id(part): node.name for node in nodes if isinstance(node, ast.ClassDef) for part in node.body}
    edits = []
    for number, node in enumerate(nodes):
        if not isinstance(node, ast.FunctionDef):
            continue
        read = {name.id for part in node.body for name in ast.walk(part) if isinstance(name, ast.Name)}
        method = id(node) in owners
        called = {node.name, owners.get(id(node), node.name)} if node.name == "__init__" else {node.name}
        for place, parameter in enumerate(node.args.args):
            if parameter.arg not in read and not (method and place == 0):
                passed = place - int(method)
                calls = [
                    (at, _passing_less(passed, parameter.arg))
                    for at, call in enumerate(nodes)
                    if _is_call(call, called)
                ]
                edits.append(SingleEdit(((number, _taking_less(place)), *calls)))
        edits += [_edit(number, _without_default) for _ in node.args.defaults[:1]]
        for kind in ("vararg", "kwarg"):
            if getattr(node.args, kind) is not None and getattr(node.args, kind).arg not in read:
                edits.append(_edit(number, partial(_without_star, kind=kind)))
        if node.args.kwonlyargs:
            edits.append(_edit(number, _without_keyword_only))
    return edits


def _is_call(node: ast.AST, names: set[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in names


def _taking_less(place: int) -> Callable[[Any], Replacement]:
    def change(function: ast.FunctionDef) -> ast.FunctionDef:
        behind = len(function.args.args) - place  # defaults belong to the last parameters
        if behind <= len(function.args.defaults):
            del function.args.defaults[-behind]
        del function.args.args[place]
        return function

    return change


def _passing_less(place: int, name: str) -> Callable[[Any], Replacement]:
    def change(call: ast.Call) -> ast.Call:
        call.keywords = [keyword for keyword in call.keywords if keyword.arg != name]
        if 0 <= place < len(call.args) and not any(isinstance(arg, ast.Starred) for arg in call.args):
            del call.args[place]
        return call

    return change


def _without_star(function: ast.FunctionDef, kind: str) -> ast.FunctionDef:
    setattr(function.args, kind, None)
    return function


def _without_default(function: ast.FunctionDef) -> ast.FunctionDef:
    function.args.defaults = function.args.defaults[1:]
    return function


def _without_keyword_only(function: ast.FunctionDef) -> ast.FunctionDef:
    function.args.kwonlyargs, function.args.kw_defaults = [], []
    return function


def constant_edits(case: SourceCase) -> list[SingleEdit]:
    """Make one constant plainer: whole numbers towards 0, 1 and 2, others to one digit, text to nothing."""
    edits = []
    for number, node in enumerate(numbered(case.tree())):
        if isinstance(node, ast.Constant):
            for value in plainer(node.value):
                edits.append(_edit(number, partial(_constant, value=value)))
    return edits


def _constant(_node: ast.Constant, value: Any) -> ast.Constant:
    return ast.Constant(value)


def plainer(value: object) -> list[Any]:
    """Return constants that are plainer than this one, the plainest first; an empty list for the plainest."""
    if isinstance(value, bool):
        return []
    if isinstance(value, int) and value >= 0:
        return [small for small in dict.fromkeys((0, 1, 2, 3, value // 2)) if small < value]
    if isinstance(value, float):
        ranked = [
            0.0,
            1.0,
            2.0,
            float(round(value)) if abs(value) < 1e9 else value,
            round(value, 1),
            float(f"{value:.2g}"),
        ]
        return list(dict.fromkeys(ranked[: ranked.index(value)] if value in ranked else ranked))
    if isinstance(value, str) and value:
        return [""]
    return []


def base_edits(case: SourceCase) -> list[SingleEdit]:
    """Let a class derive from what its base derives from, or from `torch.nn.Module` instead of a library's module."""
    nodes = numbered(case.tree())
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    torch_imported = any(isinstance(node, ast.Import) and any(a.name == "torch" for a in node.names) for node in nodes)
    edits = []
    for number, node in enumerate(nodes):
        if not isinstance(node, ast.ClassDef) or not node.bases:
            continue
        for place, base in enumerate(node.bases):
            own = classes.get(base.id) if isinstance(base, ast.Name) else None
            if own is not None and own is not node:
                edits.append(_edit(number, partial(_derived, place=place, instead=_texts(own.bases))))
        if torch_imported and _texts(node.bases) not in _PLAIN_BASES:
            edits.append(_edit(number, partial(_derived, place=None, instead=["torch.nn.Module"])))
    return edits


def _derived(node: ast.ClassDef, place: int | None, instead: list[str]) -> ast.ClassDef:
    """Replace one base, or all of them, by others."""
    bases = [ast.parse(text, mode="eval").body for text in instead]
    node.bases = bases if place is None else [*node.bases[:place], *bases, *node.bases[place + 1 :]]
    return node


def _texts(parts: list[ast.expr]) -> list[str]:
    return [ast.unparse(part) for part in parts]


_PLAIN_BASES = (["torch.nn.Module"], ["nn.Module"], ["Module"])


def variable_edits(case: SourceCase) -> list[SingleEdit]:
    """Put what a variable holds in its place, where the next statement reads it once, or it is a name; or forget it."""
    tree = case.tree()
    nodes = numbered(tree)
    numbers = {id(node): number for number, node in enumerate(nodes)}
    edits = []
    for block in (part for node in nodes for part in blocks(node)):
        for here, after in pairwise(block):
            if not (isinstance(here, ast.Assign) and len(here.targets) == 1 and _is_variable(here.targets[0])):
                continue
            everywhere = isinstance(here.value, ast.Name | ast.Constant) and isinstance(here.targets[0], ast.Name)
            reads = _reads(tree if everywhere else after, here.targets[0])
            if reads and (everywhere or len(reads) == 1):
                change = _standing_for(here.value)
                edits.append(SingleEdit(((numbers[id(here)], _gone), *((numbers[id(read)], change) for read in reads))))
    forgotten = [number for number, node in enumerate(nodes) if isinstance(node, ast.Assign)]
    return edits + [_edit(number, lambda statement: ast.Expr(statement.value)) for number in forgotten]


def _is_variable(target: ast.expr) -> bool:
    """Return whether this is a name, or an attribute of one."""
    return isinstance(target, ast.Name) or (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name))


def _reads(node: ast.AST, target: ast.expr) -> list[ast.expr]:
    text = ast.unparse(target)
    same = [part for part in ast.walk(node) if isinstance(part, type(target)) and ast.unparse(part) == text]
    return [part for part in same if isinstance(getattr(part, "ctx", None), ast.Load)]


def _standing_for(value: ast.expr) -> Callable[[Any], Replacement]:
    text = ast.unparse(value)
    return lambda _: ast.parse(text, mode="eval").body


SINGLE_EDITS: dict[str, EditsOf] = {
    "statements": statement_edits,
    "blocks": block_edits,
    "arguments and elements": element_edits,
    "base classes": base_edits,
    "calls": call_edits,
    "variables": variable_edits,
    "parameters": parameter_edits,
    "expressions": expression_edits,
    "constants": constant_edits,
}
"""All kinds of single edits by what they take out, in the order in which they remove most."""
