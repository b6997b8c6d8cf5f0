"""FrameStack: the frames that are being evaluated, and what the program may ask of them."""

import inspect
import sys
import types
import weakref
from collections.abc import Callable
from typing import NoReturn

from ...base.noted_warnings import NotedWarning
from ...base.origin import Origin
from ...bytecode.raising import awaited_truth
from ...values.constant import Constant
from ...values.python.containers.mappings import DictValue
from ...values.reasons import CLASS_DEFINITION, FRAME_ACCESS, Break, SkipFrame
from ...values.value import CallingFrames, CaptureContext, Value
from ..skip_rules import is_torch_file
from .frame import FrameState, SuspendedValue, handled_in
from .lazy import LazyValue


class FrameStack(CallingFrames):
    """The frames of one capture, the innermost last.

    entered: those that the unit goes on with. given: the ids of the objects that it was given. stopped_by: the last
    Break or SkipFrame, stopped: where it came from. warned: warnings of what was evaluated. dropped: what
    the last instruction dropped and that does something when it ends; None while nothing is evaluated. suspended: the
    generators that were made, while they live.
    """

    def __init__(self, ctx: CaptureContext) -> None:
        self.ctx = ctx
        self.stack: list[FrameState] = []
        self.entered: list[FrameState] = []
        self.given: frozenset[int] = frozenset()
        self.stopped_by: BaseException | None = None
        self.stopped: tuple[FrameState, ...] = ()
        self.warned: list[NotedWarning] = []
        self.dropped: list[Callable[[], None]] | None = []
        self.suspended: list[weakref.ref[SuspendedValue]] = []

    def note_stop(self, signal: BaseException) -> None:
        """Remember where a Break or SkipFrame came from; frames further out pass the same one on."""
        if signal is not self.stopped_by:
            self.stopped_by, self.stopped = signal, tuple(self.stack)

    def release(self) -> None:
        """Drop the program's objects."""
        for frame in self.entered:
            frame.locals.clear()
            frame.cells.clear()
            frame.stack.clear()
        self.stack.clear()
        self.stopped, self.stopped_by = (), None

    def pending(self) -> list[SuspendedValue]:
        """Return the suspended generators that do something when they are closed, in the order they were made."""
        living = (reference() for reference in self.suspended)
        return [value for value in living if value is not None and value.source is None and value.cleans_up()]

    def here(self) -> Origin | None:
        """Return the innermost user line, without its callers."""
        if not self.stack:
            return None
        frame = self.stack[-1]
        code = frame.decoded.code
        return Origin(code.co_filename, frame.line(), code.co_name)

    def user_line(self) -> Origin | None:
        """Return the innermost line that is not torch's own."""
        outside = (frame for frame in reversed(self.stack) if not is_torch_file(frame.decoded.code.co_filename))
        frame = next(outside, None)
        if frame is None:
            return self.here()
        code = frame.decoded.code
        return Origin(code.co_filename, frame.line(), code.co_name)

    def is_dropped(self) -> bool:
        """Return whether the instruction after the one being evaluated drops its result."""
        frame = self.stack[-1]
        return frame.decoded.instructions[frame.index].name == "POP_TOP"

    def awaited_truth(self) -> bool | None:
        """Return the truth value with which those who wait for the innermost instruction's result raise no error."""
        return awaited_truth((frame.decoded, frame.index) for frame in reversed(self.stack))

    def calling_namespace(self) -> dict[str, object]:
        """Return the globals of the innermost frame."""
        return self.stack[-1].namespace

    def calling_frame(self, depth: int) -> tuple[types.CodeType, int, object]:
        """Return a frame that is evaluated here, after its code and its line; see Frames."""
        if depth >= len(self.stack):
            self.needs_own_frame("a frame outside the compiled function", depth)
        frame = self.stack[-1 - depth]
        return frame.decoded.code, frame.line(), frame

    def depth_of(self, frame: object) -> int | None:
        """Return how far out a frame that is evaluated here is; None if it has ended."""
        return next((depth for depth, one in enumerate(reversed(self.stack)) if one is frame), None)

    def calling_locals(self) -> dict[str, Value]:
        """Return the locals of the innermost frame in the order of its code, then what its closure holds."""
        frame = self.stack[-1]
        if frame.resumed:
            self.needs_own_frame("locals() after a break, where not all of them are kept")
        code, values = frame.decoded.code, dict(frame.locals)
        if not code.co_flags & inspect.CO_OPTIMIZED:
            self.break_around(Break(CLASS_DEFINITION, "locals() in the body of a class, which are its namespace"))
        cells = {name: cell.content for name, cell in frame.cells.items() if cell.content is not None}
        order = dict.fromkeys((*code.co_varnames, *code.co_cellvars, *code.co_freevars))
        return {
            name: self.ctx.realize(value) for name in order if (value := values.get(name, cells.get(name))) is not None
        }

    def locals_given(self) -> Value:
        """Return what `locals()` gives: before Python 3.13 the same dictionary every time, brought up to date."""
        frame, values = self.stack[-1], self.calling_locals()
        dictionary = frame.locals_given
        if not isinstance(dictionary, DictValue) or sys.version_info >= (3, 13):
            frame.locals_given = DictValue.of(self.ctx, [(Constant(name), value) for name, value in values.items()])
            return frame.locals_given
        code = frame.decoded.code
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            key = Constant(name)
            if name in values:
                dictionary.set_item(self.ctx, key, values[name])
            elif dictionary.contains(self.ctx, key):
                dictionary.del_item(self.ctx, key)
        return dictionary

    def hold(self, test: Callable[[object], bool]) -> bool:
        """Return whether a running frame has an object from outside that passes, in a variable or on its stack."""
        frames = {id(frame): frame for frame in (*self.entered, *self.stack)}.values()
        held = [value for frame in frames for value in (*frame.locals.values(), *frame.stack)]
        held += [cell.content for frame in frames for cell in frame.cells.values() if cell.content is not None]
        return any(test(value.raw if isinstance(value, LazyValue) else getattr(value, "real", None)) for value in held)

    def calling_class_cell(self) -> tuple[Value, Value]:
        """Return what zero-argument super() reads."""
        frame = self.stack[-1]
        if not frame.decoded.code.co_argcount:
            self.ctx.throw(RuntimeError, "super(): no arguments")
        cell = frame.cells.get("__class__")
        first = frame.decoded.code.co_varnames[0]
        owner = frame.locals.get(first) or (frame.cells[first].content if first in frame.cells else None)
        if owner is None:
            self.ctx.throw(RuntimeError, "super(): arg[0] deleted")
        if cell is None:
            self.ctx.throw(RuntimeError, "super(): __class__ cell not found")
        return cell.load(self.ctx, "__class__"), owner

    def handled_exception(self) -> Value | None:
        """Return the exception that is being handled."""
        return handled_in(self.stack)

    def break_around(self, signal: Break) -> NoReturn:
        """Break where the innermost frame is called: what it makes ends with it, if it is a unit of its own."""
        if len(self.stack) > 1:
            self.stack[-1].transparent = False
        raise signal

    def needs_own_frame(self, what: str, depth: int = 0) -> NoReturn:
        """Run the root frame eagerly; a called function becomes a unit of its own first, which does the same.

        depth: how many frames further out are looked at; the unit is that of the outermost of them.
        """
        if len(self.stack) > depth + 1:
            for frame in self.stack[-1 - depth :]:
                frame.transparent = False
            raise Break(FRAME_ACCESS, what)
        raise SkipFrame(FRAME_ACCESS, what)
