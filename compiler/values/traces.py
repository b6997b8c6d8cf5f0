"""Tracebacks for exceptions that were raised while evaluating: entries that name the user's lines."""

from collections.abc import Iterator
from types import FrameType, FunctionType, TracebackType

from ..base.origin import Origin


def give_traceback(error: BaseException, places: tuple[Origin, ...], *held: object) -> None:
    """Set the traceback that the exception would have, had the lines been run; places: the outermost first.

    held: what the names of these frames hold, and end with the traceback.

    The frames run nothing and know no caller: through one, the exception would hold the frame that holds it.
    """
    trace: TracebackType | None = None
    for place in reversed(places):
        trace = TracebackType(trace, _frame_at(place, held if trace is None else ()), 0, place.line)
    error.__traceback__ = trace


def add_callers(error: BaseException, places: tuple[Origin, ...]) -> None:
    """Put the lines that called in front of the traceback, which a function of ours began; places: the outermost first.

    Python would add them, had each frame of the user's been run by itself.
    """
    trace = error.__traceback__
    for place in reversed(places):
        trace = TracebackType(trace, _frame_at(place, ()), 0, place.line)
    error.__traceback__ = trace


def add_caller(error: BaseException, file: str, line: int, function: str, held: tuple[object, ...]) -> None:
    """Put the line that called in the place of the first entry of the traceback, a function of ours that handles it.

    held: what the names of the caller hold.
    """
    trace = error.__traceback__
    below = None if trace is None else trace.tb_next
    error.__traceback__ = TracebackType(below, _frame_at(Origin(file, line, function), held), 0, line)


def _nothing(held: tuple[object, ...]) -> Iterator[None]:
    yield


def _frame_at(place: Origin, held: tuple[object, ...]) -> FrameType:
    """Return the frame of a generator that never starts, whose code claims to be at the place."""
    code = _nothing.__code__
    code = code.replace(
        co_filename=place.file,
        co_name=place.function,
        co_qualname=place.function,
        co_firstlineno=place.line,
        co_linetable=_one_line(len(code.co_code) // 2),
    )
    generator = FunctionType(code, {}, place.function)(held)
    frame: FrameType = generator.gi_frame
    return frame


def _one_line(units: int) -> bytes:
    """Return a line table that puts all code on the first line, without columns (Objects/locations.md: kind 13)."""
    out = bytearray()
    while units > 0:
        length = min(units, 8)
        out += bytes((128 | (13 << 3) | (length - 1), 0))
        units -= length
    return bytes(out)
