"""Continue frames that called one another, in plain CPython: the innermost, then each caller with its result."""

from collections.abc import Callable
from dataclasses import dataclass

from .handling import run_handling
from .instruction import Decoded, Handler
from .resume_code import HANDLED, NULL, VALUE, ResumeLayout, make_resume_function

Run = Callable[[list[tuple[object, ...]]], object]  # of a list of one tuple, which is taken out of it
Trace = Callable[[BaseException, str, int, str, tuple[object, ...]], None]
"""Puts a file, a line and a function's name before a traceback, and what the names of that function hold."""
NO_POSITION = -1  # what stands for the place where an exception left the code that was cut


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a frame goes on. namespace: its globals.

    A caller goes on after its call: what the frame inside gives is pushed on top of the stack of the layout.
    drops: that is not pushed, because the stack holds already what stands for it (a new object, inside `__init__`).
    """

    decoded: Decoded
    namespace: dict[str, object]
    layout: ResumeLayout
    drops: bool = False

    def key(self) -> tuple[object, ...]:
        """Return what is equal for equal places."""
        return (self.decoded.code, id(self.namespace), self.layout, self.drops)

    def size(self) -> int:
        """Return how many values the frame is given."""
        layout = self.layout
        return sum(kind != NULL for kind in layout.stack) + len(layout.cells) + len(layout.locals)


def make_chain_function(places: tuple[Place, ...], trace: Trace | None = None) -> Run:
    """Return a function that continues the frames, of a list of one tuple: the values of each, the innermost first.

    No frame holds the tuple: what a name lets go of is gone.  An exception goes to the handler around the call in the
    nearest caller that has one, as if nothing had been cut.  trace: adds the lines that called, as Python does.
    """
    first = places[0]
    run: Run = make_resume_function(first.decoded, first.layout, first.namespace, handed=True)
    size = first.size()
    for place in places[1:]:
        run = _called_from(place, run, size, trace)
        size += place.size()
    return run


def _called_from(place: Place, inner: Run, size: int, trace: Trace | None) -> Run:
    """Return what runs `inner` on the first `size` values, then the caller's frame on the others."""
    layout, decoded = place.layout, place.decoded
    handled = _handled_by(layout)
    pushed = () if place.drops else (VALUE,)
    returns = ResumeLayout(layout.index, layout.stack + pushed, layout.cells, layout.locals)
    resume = make_resume_function(decoded, returns, place.namespace, handed=True)
    depth = sum(kind != NULL for kind in layout.stack)
    handle = _handler_of(place)
    line = decoded.instructions[layout.index - 1].line or decoded.code.co_firstlineno

    def run(handed: list[tuple[object, ...]]) -> object:
        values = handed.pop()
        given, kept = [values[:size]], [values[size:]]
        del values
        try:
            result = (
                inner(given) if handled is None else run_handling(_exception(kept[0][handled]), lambda: inner(given))
            )
        except BaseException as error:
            if trace is not None:
                held = kept.pop()[depth:] if handle is None else ()  # else the frame goes on, and holds them itself
                trace(error, decoded.code.co_filename, line, decoded.code.co_name, held)
                del held
            if handle is None:
                raise
            given.append(handle.values(kept.pop(), error))
        else:
            above = kept.pop()
            given.append((*above[:depth], *(() if place.drops else (result,)), *above[depth:]))
            del above, result
            return resume(given)
        return handle.resume(given)

    return run


def _exception(value: object) -> BaseException:
    assert isinstance(value, BaseException)  # by its kind in the layout
    return value


def _handled_by(layout: ResumeLayout) -> int | None:
    """Return which value of a caller is the exception that it handles, None if there is none."""
    kinds = [kind for kind in layout.stack if kind != NULL]
    return None if HANDLED not in kinds else len(kinds) - 1 - kinds[::-1].index(HANDLED)


@dataclass(frozen=True, slots=True)
class _CallersHandler:
    """What goes on in the handler around a caller's call: `resume` on the values it is given."""

    resume: Run
    depth: int  # how many values of the stack it keeps
    size: int  # of the stack
    position: tuple[int, ...]

    def values(self, values: tuple[object, ...], error: BaseException) -> tuple[object, ...]:
        """Return what the handler goes on with, of the caller's values and the exception."""
        return (*values[: self.depth], *self.position, error, *values[self.size :])


def _handler_of(place: Place) -> _CallersHandler | None:
    """Return the handler around the caller's call, None if there is none."""
    handler = place.decoded.handler_of[place.layout.index - 1]
    if handler is None:
        return None
    layout = place.layout
    resume = make_resume_function(place.decoded, handler_layout(handler, layout), place.namespace, handed=True)
    depth = sum(kind != NULL for kind in layout.stack[: handler.depth])
    size = sum(kind != NULL for kind in layout.stack)
    return _CallersHandler(resume, depth, size, (NO_POSITION,) if handler.keeps_position else ())


def handler_layout(handler: Handler, layout: ResumeLayout) -> ResumeLayout:
    """Return the layout at the start of a handler: the stack it keeps, the position if it wants it, the exception."""
    pushed = (VALUE, VALUE) if handler.keeps_position else (VALUE,)
    return ResumeLayout(handler.target, layout.stack[: handler.depth] + pushed, layout.cells, layout.locals)
