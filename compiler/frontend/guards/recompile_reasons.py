"""Why a call fitted no specialisation: the guard that failed, what it expected and what there is, in words."""

from ...base.real_objects.past_methods import is_really
from ...values.guard import Guard, TensorFacts
from ...values.source import Source
from .generated_function import Names
from .guard_rules import actual_words, check_text, expected_words
from .rule import CHECK_NAMES


def failing_guard(
    guards: tuple[Guard, ...], parameters: list[str], args: tuple[object, ...]
) -> tuple[Guard | None, str, str]:
    """Return the first guard that the arguments fail, what it expects and what there is; (None, "", "") if none."""
    for guard in guards:
        try:
            holds, value, others = _evaluated(guard, parameters, args)
        except Exception as error:
            return guard, expected_words(guard), f"{type(error).__name__}: {error}"
        if not holds:
            return guard, expected_words(guard), actual_words(guard, value, others)
    return None, "", ""


def measured(guards: tuple[Guard, ...], parameters: list[str], args: tuple[object, ...]) -> list[tuple[Guard, object]]:
    """Return the guards on tensors and numbers of these arguments, each with the value that is there now.

    Only values inside objects that are as they were captured are read: reading an item of another kind of object may
    run its code, and a `defaultdict` has the item afterwards.
    """
    wanted = [guard for guard in guards if guard.source is not None and _has_measure(guard)]
    bases = {base for guard in wanted for base in _bases(guard.source)}
    changed: set[Source] = set()
    for guard in guards:
        if guard.source not in bases or not changed.isdisjoint((guard.source, *_bases(guard.source))):
            continue
        try:
            holds = _evaluated(guard, parameters, args)[0]
        except Exception:
            holds = False
        if not holds:
            changed.add(guard.source)
    reached = [guard for guard in wanted if changed.isdisjoint(_bases(guard.source))]
    return [(guard, _fetched(guard.source, parameters, args)) for guard in reached if guard.source is not None]


def _has_measure(guard: Guard) -> bool:
    return is_really(guard.expected, TensorFacts) or type(guard.expected) in (int, float)


def _bases(source: Source | None) -> list[Source]:
    """Return what a source starts from, and what that starts from, to the root."""
    bases: list[Source] = []
    base = None if source is None else source.base()
    while base is not None:
        bases.append(base)
        base = base.base()
    return bases


def _fetched(source: Source, parameters: list[str], args: tuple[object, ...]) -> object:
    """Return what a source gives for these arguments; None if it cannot be reached."""
    names, lines = Names(), list[str]()
    name = names.fetch(source, lines)
    place = dict(names.constants) | dict(zip(parameters, args, strict=True))
    try:
        exec("\n".join(lines), place)
    except Exception:
        return None
    return place.get(name)


def _evaluated(
    guard: Guard, parameters: list[str], args: tuple[object, ...]
) -> tuple[bool, object, tuple[object, ...]]:
    names, lines = Names(), list[str]()
    value = names.fetch(guard.source, lines) if guard.source is not None else ""
    others = tuple(names.fetch(other, lines) for other in guard.others)
    check = check_text(guard, value, others, names.inject)
    place = CHECK_NAMES | names.constants | dict(zip(parameters, args, strict=True))
    exec("\n".join(lines), place)
    return bool(eval(check, place)), place.get(value), tuple(place[other] for other in others)
