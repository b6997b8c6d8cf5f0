"""Imports replaced by what they import, one name at a time: the way to one file that needs torch alone.

Inlining a name copies its definition out of the source of its module.  What the definition reads there becomes an
import of its own, which is inlined in a later step if it is still there: cutting the program in between keeps whole
packages from being copied.
"""

import ast
import builtins
import copy
import importlib
import importlib.util
import symtable
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

from .source_case import SourceCase, case_of_tree, source_case

KEPT = frozenset({"torch", "numpy", "plumbline", "pytest", "_pytest", "hypothesis", "__future__", "__main__"})
"""Packages that are never copied: what is compiled, what compiles, and what a script may need to run."""
LARGEST = 4000
"""Lines of a definition that is still copied."""


@dataclass(frozen=True, slots=True)
class ImportedName:
    """One name that a program imports: bound as `name`, found as `attribute` of `module` ("" for the module itself)."""

    name: str
    module: str
    attribute: str


def imported_names(case: SourceCase) -> list[ImportedName]:
    """Return the names that a program imports, at the top or inside functions, from modules that can be copied."""
    found = []
    for node in ast.walk(case.tree()):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [ImportedName(one.asname or one.name, node.module, one.name) for one in node.names]
        elif isinstance(node, ast.Import):
            found += [ImportedName(one.asname, one.name, "") for one in node.names if one.asname]
            found += [ImportedName(one.name, one.name, "") for one in node.names if not one.asname]
    return [one for one in dict.fromkeys(found) if one.attribute != "*" and can_be_copied(one.module)]


def can_be_copied(module: str) -> bool:
    """Return whether a module is Python of a package, or of the user's own, and not of the standard library."""
    top = module.split(".")[0]
    return top not in KEPT and top not in sys.stdlib_module_names


def inlined(case: SourceCase, one: ImportedName) -> SourceCase | None:
    """Return the program with one imported name defined in it, None where there is no Python source to copy.

    A module that is imported whole is taken apart into the attributes that the program reads of it.
    """
    if not one.attribute:
        return _taken_apart(case, one)
    home = _definition(one.module, one.attribute)
    if home is None:
        return _as_whole_module(case, one) if _is_submodule(one) else None
    module, name, statements = home
    if module != one.module and (not statements or sum(_lines(part) for part in statements) > LARGEST):
        return _redirected(case, one, module, name)
    if not statements or sum(_lines(part) for part in statements) > LARGEST:
        return None
    return _with_definition(case, one, (module, name), statements)


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _with_definition(
    case: SourceCase, one: ImportedName, home: tuple[str, str], statements: list[ast.stmt]
) -> SourceCase | None:
    module, attribute = home
    tree = case.tree()
    taken = _bound_names(tree) - {one.name}
    renamed: dict[str, str] = {} if attribute == one.name else {attribute: one.name}
    imports: list[ast.stmt] = []
    for name in sorted(_read_from_module(statements) - {attribute}):
        source = _import_of(module, name)
        if source is None:
            continue
        same = any(_binds_alike(statement, source) for statement in tree.body)
        if not same and name in taken:
            renamed[name] = _free(name, taken)
            source.names[0].asname = renamed[name]
        imports.append(source)  # where it is there already it may stand too low
    definition = [_Renamed(renamed).visit(copy.deepcopy(part)) for part in statements]
    _remove_import(tree, one)
    tree.body[:0] = [*imports, *definition]
    _futures_first(tree)
    try:
        return source_case(ast.unparse(ast.fix_missing_locations(tree)))
    except SyntaxError:
        return None


def _futures_first(tree: ast.Module) -> None:
    futures = [s for s in tree.body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    tree.body = [*futures, *(s for s in tree.body if s not in futures)]


def _redirected(case: SourceCase, one: ImportedName, module: str, name: str) -> SourceCase:
    tree = case.tree()
    _remove_import(tree, one)
    tree.body.insert(0, ast.ImportFrom(module, [ast.alias(name, one.name)], 0))
    _futures_first(tree)
    return case_of_tree(tree)


def _is_submodule(one: ImportedName) -> bool:
    part = getattr(_import(one.module), one.attribute, None)
    return isinstance(part, ModuleType) and _spec(f"{one.module}.{one.attribute}") is not None


def _as_whole_module(case: SourceCase, one: ImportedName) -> SourceCase:
    """Write `from p import m as n` as `import p.m as n`, which can be taken apart."""
    tree = case.tree()
    _remove_import(tree, one)
    tree.body.insert(0, ast.Import([ast.alias(f"{one.module}.{one.attribute}", one.name)]))
    _futures_first(tree)
    return case_of_tree(tree)


def _taken_apart(case: SourceCase, one: ImportedName) -> SourceCase | None:
    """Replace `import m as n` and every `n.a` by `from m import a` and `a`."""
    tree = case.tree()
    taken = _bound_names(tree)
    attributes = _AttributesOf(one.name, taken)
    attributes.visit(tree)
    if not attributes.found:
        return None if attributes.left else _with_whole_module(case, one)
    module = _import(one.module)
    if module is None:
        return None
    for attribute, name in attributes.found.items():
        part = f"{one.module}.{attribute}"
        is_module = isinstance(getattr(module, attribute, None), ModuleType) and _spec(part) is not None
        new = (
            ast.Import([ast.alias(part, name)])
            if is_module
            else ast.ImportFrom(one.module, [ast.alias(attribute, name)], 0)
        )
        tree.body.insert(0, new)
    if not attributes.left:
        _remove_import(tree, one)
    _futures_first(tree)
    return case_of_tree(tree)


def _with_whole_module(case: SourceCase, one: ImportedName) -> SourceCase | None:
    """Put the statements of a module that is imported for what it does in the place of its import.

    None where they bind what the program binds too, or are relative to a package.
    """
    file, tree = _source_file(one.module), case.tree()
    try:
        module = ast.parse(file.read_text(encoding="utf-8")) if file is not None else ast.Module([], [])
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    bound = {name for statement in module.body for name in _names_bound_by(statement) if _is_definition(statement)}
    relative = any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(module))
    places = [place for place, statement in enumerate(tree.body) if _binds_alike(statement, _import_as(one))]
    if not places or relative or not module.body or _length(module) > LARGEST or bound & _bound_names(tree):
        return None
    _remove_import(tree, one)
    tree.body[places[0] : places[0]] = module.body
    _futures_first(tree)
    return source_case(ast.unparse(ast.fix_missing_locations(tree)))


def _is_definition(statement: ast.stmt) -> bool:
    return not isinstance(statement, ast.Import | ast.ImportFrom)


def _import_as(one: ImportedName) -> ast.Import:
    return ast.Import([ast.alias(one.module, None if one.name == one.module else one.name)])


def _length(module: ast.Module) -> int:
    return sum(_lines(statement) for statement in module.body)


class _AttributesOf(ast.NodeTransformer):
    """Replaces reads of attributes of one module by names; `left` says whether the module is read otherwise."""

    def __init__(self, name: str, taken: set[str]) -> None:
        self.path = name.split(".")
        self.taken = taken
        self.found: dict[str, str] = {}
        self.left = False

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if _dotted(node.value) == self.path and isinstance(node.ctx, ast.Load):
            if node.attr not in self.found:
                self.found[node.attr] = _free(node.attr, self.taken) if node.attr in self.taken else node.attr
                self.taken.add(self.found[node.attr])
            return ast.Name(self.found[node.attr], ast.Load())
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.Name:
        self.left = self.left or node.id == self.path[0]
        return node


def _dotted(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    return [*_dotted(node.value), node.attr] if isinstance(node, ast.Attribute) else [""]


def _remove_import(tree: ast.Module, one: ImportedName) -> None:
    class Remover(ast.NodeTransformer):
        def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | None:
            if node.module == one.module and one.attribute and not node.level:
                node.names = [a for a in node.names if (a.name, a.asname or a.name) != (one.attribute, one.name)]
            return node if node.names else None

        def visit_Import(self, node: ast.Import) -> ast.stmt | None:
            if not one.attribute:
                node.names = [a for a in node.names if (a.name, a.asname or a.name) != (one.module, one.name)]
            return node if node.names else None

    Remover().visit(tree)
    for node in ast.walk(tree):
        if getattr(node, "body", None) == [] and not isinstance(node, ast.Module):
            node.body = [ast.Pass()]  # type: ignore[attr-defined]  # every node with a list `body`


def _bound_names(tree: ast.AST) -> set[str]:
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(one.asname or one.name).split(".")[0] for one in node.names}
    return bound | set(dir(builtins))


def _free(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    taken.add(f"{name}_{number}")
    return f"{name}_{number}"


def _binds_alike(statement: ast.stmt, source: ast.Import | ast.ImportFrom) -> bool:
    """Return whether a statement at the top already binds what an import would bind."""
    if type(statement) is not type(source):
        return False
    if (
        isinstance(statement, ast.ImportFrom)
        and isinstance(source, ast.ImportFrom)
        and statement.module != source.module
    ):
        return False
    wanted = source.names[0]
    assert isinstance(statement, ast.Import | ast.ImportFrom)
    return any((a.name, a.asname or a.name) == (wanted.name, wanted.asname or wanted.name) for a in statement.names)


class _Renamed(ast.NodeTransformer):
    """Gives names of a module others; a definition that binds such a name itself keeps it only in its own text."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.name = self.names.get(node.name, node.name)
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.name = self.names.get(node.name, node.name)
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self.names.get(node.arg, node.arg)
        return node


def _read_from_module(statements: list[ast.stmt]) -> set[str]:
    """Return the names that some code reads of its module: global in its scopes, and not of Python itself."""
    text = "\n".join(ast.unparse(source) for source in map(_plain, statements))
    found: set[str] = set()
    waiting = [symtable.symtable(text, "<definition>", "exec")]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        outermost = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (symbol.is_global() or outermost):
                found.add(symbol.get_name())
    return {name for name in found if not hasattr(builtins, name)}


def _plain(statement: ast.stmt) -> ast.stmt:
    (copied,) = source_case(ast.unparse(statement)).tree().body
    return copied


def _import_of(module: str, name: str) -> ast.Import | ast.ImportFrom | None:
    """Return an absolute import that binds a name as the module's own code sees it."""
    for statement in _bindings(module).get(name, ()):
        if isinstance(statement, ast.Import):
            (alias,) = [a for a in statement.names if (a.asname or a.name.split(".")[0]) == name][:1]
            return ast.Import([ast.alias(alias.name, alias.asname)])
        if isinstance(statement, ast.ImportFrom):
            (alias,) = [a for a in statement.names if (a.asname or a.name) == name][:1]
            return ast.ImportFrom(_absolute(module, statement), [ast.alias(alias.name, alias.asname)], 0)
    loaded = _import(module)
    return ast.ImportFrom(module, [ast.alias(name)], 0) if hasattr(loaded, name) else None


def _absolute(module: str, statement: ast.ImportFrom) -> str:
    if not statement.level:
        return statement.module or ""
    package = module if _is_package(module) else module.rpartition(".")[0]
    for _ in range(statement.level - 1):
        package = package.rpartition(".")[0]
    return f"{package}.{statement.module}" if statement.module else package


def _definition(module: str, name: str) -> tuple[str, str, list[ast.stmt]] | None:
    """Return the module and name of a definition, and its statements there; none where it cannot be copied."""
    for _ in range(20):  # re-exports of re-exports
        found = _bindings(module).get(name, ())
        if found and not any(isinstance(statement, ast.Import | ast.ImportFrom) for statement in found):
            return module, name, list(found)
        source = next((s for s in found if isinstance(s, ast.ImportFrom)), None)
        if source is None:
            return _by_object(module, name)
        (alias,) = [a for a in source.names if (a.asname or a.name) == name][:1]
        module, name = _absolute(module, source), alias.name
        if not can_be_copied(module):
            return module, name, []
    return None


def _by_object(module: str, name: str) -> tuple[str, str, list[ast.stmt]] | None:
    """Return the home of a name that no statement binds: star imports, and packages that load their parts late."""
    value = getattr(_import(module), name, None)
    home = getattr(value, "__module__", None)
    if not isinstance(home, str) or home == module or getattr(value, "__qualname__", "") != name:
        return None
    return (home, name, _bindings(home).get(name, [])) if can_be_copied(home) else None


def _import(module: str) -> ModuleType | None:
    try:
        return importlib.import_module(module)
    except Exception:  # a package that does not load here is left as it is
        return None


def _spec(module: str) -> object:
    try:
        return importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None


def _is_package(module: str) -> bool:
    file = _source_file(module)
    return file is not None and file.name == "__init__.py"


def _source_file(module: str) -> Path | None:
    origin = getattr(_spec(module), "origin", None)
    return Path(origin) if isinstance(origin, str) and origin.endswith(".py") else None


@cache
def _bindings(module: str) -> dict[str, list[ast.stmt]]:
    """Return the statements at the top of a module's source by the names they bind."""
    file = _source_file(module)
    try:
        tree = ast.parse(file.read_text(encoding="utf-8")) if file is not None else ast.Module([], [])
    except (OSError, SyntaxError, UnicodeDecodeError):
        return {}
    found: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _names_bound_by(statement):
            found.setdefault(name, []).append(statement)
    return found


def _names_bound_by(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for one in statement.names:
            yield (one.asname or one.name).split(".")[0]
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        yield from {
            n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
    elif isinstance(statement, ast.If | ast.Try | ast.With | ast.For):
        parts = [
            *getattr(statement, "body", []),
            *getattr(statement, "orelse", []),
            *getattr(statement, "finalbody", []),
        ]
        parts += [inner for handler in getattr(statement, "handlers", []) for inner in handler.body]
        yield from dict.fromkeys(name for part in parts for name in _names_bound_by(part))
