"""Why a call fitted no specialisation: the guard that failed, what it expected and what there is, in words."""

from ...values.guard import Guard
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


def fetched(source: Source, parameters: list[str], args: tuple[object, ...]) -> object:
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
