"""Generators that capture hands over: real ones, whose state can still be read and set from outside.

Such a generator does nothing until plain Python first asks it for a value; then it builds the frame that it stands
for and runs that. Before, compiled code may move it on by setting its state, and every holder of it sees that.
"""

import inspect
import types
from collections.abc import Generator
from weakref import WeakKeyDictionary

from .resume_chain import Place
from .resume_code import make_resume_function

Values = tuple[object, ...]
RealGenerator = Generator[object, object, object]


class Kept:
    """What a generator stands for. place: where its frame goes on, None at the end; values: what the frame is given.

    A place at the first instruction is one of a generator that has not been started; its values are its locals.
    """

    def __init__(self) -> None:
        self.place: Place | None = None
        self.values: Values = ()
        self.running: RealGenerator | None = None

    def real(self) -> RealGenerator:
        """Return the frame itself as a generator; from then on it has a state of its own."""
        if self.running is None:
            self.running = _made(self.place, self.values)
        return self.running


def _made(place: Place | None, values: Values) -> RealGenerator:
    if place is None:
        ended = _nothing()
        next(ended, None)
        return ended
    if place.layout.index:
        generator: RealGenerator = make_resume_function(place.decoded, place.layout, place.namespace)(values)
        next(generator)
        return generator
    code, cells = place.decoded.code, len(place.layout.cells)
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    code = code.replace(co_argcount=len(values) - cells, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags)
    closure: tuple[types.CellType, ...] = values[:cells]  # type: ignore[assignment]  # the layout says so
    started: RealGenerator = types.FunctionType(code, place.namespace, code.co_name, None, closure)(*values[cells:])
    return started


def _nothing() -> RealGenerator:
    yield from ()
    return None


_KEPT: WeakKeyDictionary[RealGenerator, Kept] = WeakKeyDictionary()


def new_generator(name: str, qualified_name: str) -> RealGenerator:
    """Return a generator without a state yet."""
    state = Kept()
    generator = _steps(state)
    next(generator)
    for attribute, text in (("__name__", name), ("__qualname__", qualified_name)):
        setattr(generator, attribute, text)
    _KEPT[generator] = state
    return generator


def _steps(kept: Kept) -> RealGenerator:
    value: object = None
    while True:
        error, sent = None, None
        try:
            sent = yield value
        except BaseException as caught:
            error = caught
        frame = kept.real()
        try:
            value = frame.send(sent) if error is None else frame.throw(error)
        except StopIteration as stop:
            return stop.value
        finally:
            error = None  # its traceback holds this frame


def set_state(generator: RealGenerator, place: Place | None, values: Values) -> None:
    """Say where the generator stands now; it must not have been started by plain Python."""
    _KEPT[generator].place, _KEPT[generator].values = place, values


def kept_state(generator: RealGenerator) -> Kept | None:
    """Return the state of a generator that can be read; None for one that plain Python has started, or has made."""
    state = _KEPT.get(generator)
    return None if state is None or state.running is not None else state
