"""Continue frames that called one another, in plain CPython: the innermost, then each caller with its result."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .handling import run_handling
from .instruction import Decoded, Handler
from .resume_code import HANDLED, NULL, VALUE, ResumeLayout, make_resume_function

Run = Callable[[tuple[object, ...]], object]
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


def make_chain_function(places: tuple[Place, ...]) -> Run:
    """Return a function of one tuple that continues the frames; it holds the values of each, the innermost first.

    An exception goes to the handler around the call in the nearest caller that has one, as if nothing had been cut.
    """
    first = places[0]
    run: Run = make_resume_function(first.decoded, first.layout, first.namespace)
    size = first.size()
    for place in places[1:]:
        run = _called_from(place, run, size)
        size += place.size()
    return run


def _called_from(place: Place, inner: Run, size: int) -> Run:
    """Return what runs `inner` on the first `size` values, then the caller's frame on the others."""
    layout, decoded = place.layout, place.decoded
    inner = _while_handling(layout, inner, size)
    pushed = () if place.drops else (VALUE,)
    returns = ResumeLayout(layout.index, layout.stack + pushed, layout.cells, layout.locals)
    resume = make_resume_function(decoded, returns, place.namespace)
    depth = size + sum(kind != NULL for kind in layout.stack)
    handle = _handler_of(place, size)

    def run(values: tuple[object, ...]) -> object:
        try:
            result = inner(values)
        except BaseException as error:
            if handle is None:
                raise
            caught = error
        else:
            results = () if place.drops else (result,)
            return resume((*values[size:depth], *results, *values[depth:]))
        return handle(values, caught)

    return run


def _while_handling(layout: ResumeLayout, inner: Run, size: int) -> Run:
    """Return what runs the frames inside while the exception is handled that the caller handles, if any."""
    kinds = [kind for kind in layout.stack if kind != NULL]
    if HANDLED not in kinds:
        return lambda values: inner(values[:size])
    position = size + len(kinds) - 1 - kinds[::-1].index(HANDLED)

    def run(values: tuple[object, ...]) -> object:
        exception: Any = values[position]
        return run_handling(exception, lambda: inner(values[:size]))

    return run


def _handler_of(place: Place, size: int) -> Callable[[tuple[object, ...], BaseException], object] | None:
    """Return what goes on in the handler around the caller's call, None if there is none."""
    handler = place.decoded.handler_of[place.layout.index - 1]
    if handler is None:
        return None
    layout = place.layout
    resume = make_resume_function(place.decoded, handler_layout(handler, layout), place.namespace)
    depth = size + sum(kind != NULL for kind in layout.stack[: handler.depth])
    rest = size + sum(kind != NULL for kind in layout.stack)
    position = (NO_POSITION,) if handler.keeps_position else ()

    def handle(values: tuple[object, ...], error: BaseException) -> object:
        return resume((*values[size:depth], *position, error, *values[rest:]))

    return handle


def handler_layout(handler: Handler, layout: ResumeLayout) -> ResumeLayout:
    """Return the layout at the start of a handler: the stack it keeps, the position if it wants it, the exception."""
    pushed = (VALUE, VALUE) if handler.keeps_position else (VALUE,)
    return ResumeLayout(handler.target, layout.stack[: handler.depth] + pushed, layout.cells, layout.locals)
