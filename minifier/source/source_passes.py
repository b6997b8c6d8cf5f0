"""Passes over programs: what never ran, what nobody reads, statements in runs, and then every single edit."""

import ast
from collections.abc import Callable, Iterable, Iterator

from ..reduce.problem import Pass, Problem
from .inlining import imported_names
from .single_edits import SINGLE_EDITS, EditsOf, parts_of_calls, statement_edits
from .source_case import SingleEdit, SourceCase, case_of_tree, edited, numbered, unbound_names
from .source_run import RunReport

SourceProblem = Problem[SourceCase, RunReport]
SourcePass = Pass[SourceCase, RunReport]


class DropWhatDidNotRun:
    """Look first: run once with every line watched, and take out in one step all statements that did not run."""

    def __init__(self, executed: Callable[[SourceCase], frozenset[int]]) -> None:
        self.executed = executed

    def __call__(self, problem: SourceProblem) -> None:
        """Take out what did not run, of the whole program or else of each function alone."""
        lines = self.executed(problem.current)
        if not lines:
            return
        unused = _not_run(problem.current, lines)
        if not unused or problem.attempt(edited(problem.current, dict.fromkeys(unused, _nothing))):
            return
        # A compiler may run what eager did not: then half of it, and half of that.
        self._halves(problem, unused)

    def _halves(self, problem: SourceProblem, unused: list[int]) -> None:
        middle = len(unused) // 2
        for half in (unused[:middle], unused[middle:]):
            if half and problem.attempt(edited(problem.current, dict.fromkeys(half, _nothing))):
                return


LARGE = 16
"""Whole numbers from here on are mostly how often or how many; a program with smaller ones runs sooner."""


def shrink_large_numbers(problem: SourceProblem) -> None:
    """Put 2 in the place of every large whole number, or of each one alone, else half of it as long as that fails."""
    known = _large_numbers(problem.current)
    if not known or problem.attempt(edited(problem.current, dict.fromkeys(known, _two))):
        return
    for number in sorted(known, key=lambda one: -known[one]):
        if not problem.attempt(edited(problem.current, {number: _two})):
            while number in _large_numbers(problem.current):
                if not problem.attempt(edited(problem.current, {number: _half})):
                    break


def with_small_numbers(case: SourceCase) -> list[SourceCase]:
    """Return the program with 2 in the place of every large whole number, and of each one alone; the largest first."""
    known = _large_numbers(case)
    alone = [{number: _two} for number in sorted(known, key=lambda one: -known[one])] if len(known) > 1 else []
    return [edited(case, changes) for changes in (dict.fromkeys(known, _two), *alone) if changes]


def _large_numbers(case: SourceCase) -> dict[int, int]:
    constants = ((number, getattr(node, "value", None)) for number, node in enumerate(numbered(case.tree())))
    return {number: value for number, value in constants if type(value) is int and value >= LARGE}


def _two(_node: ast.Constant) -> ast.Constant:
    return ast.Constant(2)


def _half(node: ast.Constant) -> ast.Constant:
    assert isinstance(node.value, int)
    return ast.Constant(node.value // 2)


def _nothing(_node: object) -> None:
    return None


def _not_run(case: SourceCase, lines: frozenset[int]) -> list[int]:
    found = []
    for number, node in enumerate(numbered(case.tree())):
        if not isinstance(node, ast.stmt) or isinstance(node, _NO_CODE):
            continue
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        if not any(line in lines for line in range(first, max(first, last) + 1)):
            found.append(number)
    return found


_NO_CODE = (ast.Global, ast.Nonlocal, ast.Pass)
"""Statements that leave no instruction to be seen running."""


def drop_unread_names(problem: SourceProblem) -> None:
    """Take out, in one step, every import and definition at the top whose name nothing reads."""
    tree = problem.current.tree()
    while True:
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        kept = [statement for statement in tree.body if _is_needed(statement, read)]
        if len(kept) == len(tree.body):
            break
        tree.body = kept
    problem.attempt(case_of_tree(tree))


def _is_needed(statement: ast.stmt, read: set[str]) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        statement.names = [one for one in statement.names if (one.asname or one.name).split(".")[0] in read]
        return bool(statement.names)
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        inside = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        return statement.name in read and not (statement.name in inside and read == {statement.name})
    return True


def drop_runs_of_statements(problem: SourceProblem) -> None:
    """Take out many statements that stand one after the other, then half as many, down to two."""
    length = len(statement_edits(problem.current))
    while length > 2:
        length = (length + 1) // 2
        start = 0
        while start < len(edits := statement_edits(problem.current)):
            runs = (edits[place : place + length] for place in range(start, len(edits), length))
            problem.foresee(_promising_ones(problem, (_without(problem.current, run) for run in runs)))
            if not _promising(problem, _without(problem.current, edits[start : start + length])):
                start += length


def _without(case: SourceCase, edits: list[SingleEdit]) -> SourceCase:
    return edited(case, dict(change for edit in edits for change in edit.changes))


def _promising(problem: SourceProblem, candidate: SourceCase) -> bool:
    """Attempt a candidate in which no name has lost what binds it; the last check of a result asks for the others."""
    return _is_bound(problem, candidate) and problem.attempt(candidate)


def _promising_ones(problem: SourceProblem, candidates: Iterable[SourceCase]) -> Iterator[SourceCase]:
    return (candidate for candidate in candidates if _is_bound(problem, candidate))


def _is_bound(problem: SourceProblem, candidate: SourceCase) -> bool:
    return unbound_names(candidate) <= unbound_names(problem.current)


class EachSingleEdit:
    """Try every single edit of one kind, one after the other."""

    def __init__(self, name: str, edits_of: EditsOf) -> None:
        self.__name__ = name
        self.edits_of = edits_of

    def __call__(self, problem: SourceProblem) -> None:
        """Go on from the same place after a success: what stood before it was refused already."""
        place = 0
        while place < len(edits := self.edits_of(problem.current)):
            following = (edit.applied(problem.current) for edit in edits[place:])
            problem.foresee(_promising_ones(problem, following))
            if not _promising(problem, edits[place].applied(problem.current)):
                place += 1


def _parts_of_imported_calls(case: SourceCase) -> list[SingleEdit]:
    return parts_of_calls(case, {one.name for one in imported_names(case)})


skip_imported_calls = EachSingleEdit("skip_imported_calls", _parts_of_imported_calls)
"""What a function of a package is given may do for what it gives; then the function need not be copied."""

EACH_EDIT: tuple[SourcePass, ...] = tuple(EachSingleEdit(name, edits_of) for name, edits_of in SINGLE_EDITS.items())


def quick_passes(executed: Callable[[SourceCase], frozenset[int]]) -> tuple[SourcePass, ...]:
    """Return the passes that remove most for the fewest questions."""
    return (DropWhatDidNotRun(executed), drop_unread_names, skip_imported_calls, drop_runs_of_statements)
