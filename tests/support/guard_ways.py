"""Three ways to check guards: the generated Python, the evaluator in C, and the meaning that each kind's row states."""

from collections.abc import Callable

from plumbline.compiler.base.options import Options
from plumbline.compiler.frontend.guards.generated_function import MISS, Names, assemble, guard_lines
from plumbline.compiler.frontend.guards.guard_evaluator import native_evaluator
from plumbline.compiler.frontend.guards.guard_rules import RULE_OF_KIND
from plumbline.compiler.frontend.guards.guard_table import PythonFetch, guard_table
from plumbline.compiler.frontend.guards.rule import GUARD_ERRORS
from plumbline.compiler.values.guard import Guard
from plumbline.compiler.values.source import Argument, Attribute, Injected, Item, Source

Run = Callable[..., object]
PARAMETERS = ["_l0", "_l1"]


def body(*args: object) -> tuple[object, ...]:
    """Return what was passed."""
    return args


def native(guards: tuple[Guard, ...], passed: tuple[int, ...] = (), run: Run = body) -> Run:
    """Return the evaluator in C; passed: the slots that the body gets."""
    evaluator = native_evaluator(guard_table(guards, PARAMETERS), passed, run, MISS, Options())
    assert evaluator is not None
    return evaluator


def generated(guards: tuple[Guard, ...]) -> Run:
    """Return the generated Python check."""
    names = Names()
    return assemble("code", PARAMETERS, guard_lines(list(guards), names), ["return ()"], names, None, {})[0]


def meaning(guards: tuple[Guard, ...]) -> Run:
    """Return what the rows say the guards mean, asked one after another."""

    def run(*args: object) -> object:
        places: dict[Source, object] = {}
        arguments = dict(zip(PARAMETERS, args, strict=True))
        try:
            return () if all(_holds(guard, arguments, places) for guard in guards) else MISS
        except GUARD_ERRORS:
            return MISS

    return run


def verdict(run: Run, *args: object) -> str:
    """Return hit, miss or the error of a call."""
    try:
        return "miss" if run(*args) is MISS else "hit"
    except Exception as error:
        return type(error).__name__


def _holds(guard: Guard, arguments: dict[str, object], places: dict[Source, object]) -> object:
    value = None if guard.source is None else _fetched(guard.source, arguments, places)
    others = tuple(_fetched(other, arguments, places) for other in guard.others)
    return RULE_OF_KIND[guard.kind].meaning(guard, value, others)


def _fetched(source: Source, arguments: dict[str, object], places: dict[Source, object]) -> object:
    """Return what a source leads to; places: what earlier sources led to, since each is fetched once."""
    if isinstance(source, Argument):
        return arguments[source.name]
    if isinstance(source, Injected):
        return source.value
    if source not in places:
        base = source.base()
        assert base is not None
        places[source] = _step(source, _fetched(base, arguments, places))
    return places[source]


def _step(source: Source, base: object) -> object:
    if isinstance(source, Attribute):
        return getattr(base, source.name)
    if isinstance(source, Item):
        return base[source.key]  # type: ignore[index]  # a container, by the source's own claim
    return PythonFetch(source)(base)
