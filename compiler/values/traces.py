"""Tracebacks for exceptions that were raised while evaluating: entries that name the user's lines."""

from collections.abc import Callable
from types import CodeType, FunctionType

from ..base.origin import Origin

Step = Callable[[BaseException], None]


def give_traceback(error: BaseException, places: tuple[Origin, ...]) -> None:
    """Set the traceback that the exception would have, had the lines been run; places: the outermost first.

    Each line becomes the frame of a function that does nothing but call the next, and the last one raises.
    """
    context = error.__context__
    step: Step = _frame_at(places[-1], _raise.__code__, None)
    for place in reversed(places[:-1]):
        step = _frame_at(place, _call.__code__, step)
    try:
        step(error)
    except BaseException as caught:
        trace = caught.__traceback__
        error.__traceback__ = trace.tb_next if trace is not None else None  # without this function's own entry
    error.__context__ = context


def _raise(error: BaseException, step: Step | None) -> None:
    raise error


def _call(error: BaseException, step: Step) -> None:
    step(error)


def _frame_at(place: Origin, code: CodeType, step: Step | None) -> Step:
    code = code.replace(
        co_filename=place.file,
        co_name=place.function,
        co_qualname=place.function,
        co_firstlineno=place.line,
        co_linetable=_one_line(len(code.co_code) // 2),
    )
    return FunctionType(code, {}, place.function, (step,))


def _one_line(units: int) -> bytes:
    """Return a line table that puts all code on the first line, without columns (Objects/locations.md: kind 13)."""
    out = bytearray()
    while units > 0:
        length = min(units, 8)
        out += bytes((128 | (13 << 3) | (length - 1), 0))
        units -= length
    return bytes(out)
