"""The state of one Python frame under evaluation."""

import gc
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from ...base.origin import Origin
from ...bytecode.instruction import Decoded, Instruction
from ...bytecode.liveness import live_locals
from ...values.python.containers.mapping_views import Entry
from ...values.python.objects.functions import BoundMethod, CellValue
from ...values.torch.modes import LeaveBlock
from ...values.value import CaptureContext, Value


class NullValue(Value):
    """The NULL that CPython keeps below a callable on the stack."""

    def python_type(self) -> type:
        """Return NoneType; nothing asks."""
        return type(None)

    def describe(self) -> str:
        """Return NULL."""
        return "NULL"


NULL = NullValue()


class HandledValue(Value):
    """What lies below the stack of a handler: the exception state to go back to; exception: the one it handles."""

    def __init__(self, exception: Value) -> None:
        self.exception = exception

    def python_type(self) -> type:
        """Return NoneType; nothing asks."""
        return type(None)

    def describe(self) -> str:
        """Say what it is."""
        return "the exception state around a handler"


class SuspendedValue(Value):
    """A generator that is evaluated, suspended or not. names: `__name__` and `__qualname__`, those of its function."""

    names: tuple[str, str]

    def cleans_up(self) -> bool:
        """Return whether it does something when it is closed."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class FrameState:
    """Stack, locals and cells of one frame; index: of the next instruction.

    cells: closure variables, of this frame and free ones.
    resumed: it did not start here, so locals that it does not read any more are not known.
    returned, yielded: set when the frame stops.  transparent: the caller's instruction pushes what the frame returns
    and does nothing else with it, so the frame can be left and continued apart.  step: number of the instruction.
    instead: what the caller's instruction pushes for what the frame returns.  drops: the frame waits for one inside
    whose result is not pushed, as the stack holds already what stands for it.  locals_given: what locals() gave.
    """

    ctx: CaptureContext
    decoded: Decoded
    namespace: dict[str, object]
    locals: dict[str, Value]
    cells: dict[str, CellValue]
    parent: "FrameState | None"
    free_cells: list[CellValue] = field(default_factory=list)
    stack: list[Value] = field(default_factory=list)
    index: int = 0
    keyword_names: tuple[str, ...] = ()
    returned: Value | None = None
    yielded: Value | None = None
    transparent: bool = False
    instead: Value | None = None
    drops: bool = False
    resumed: bool = False
    step: int = 0
    locals_given: Value | None = None

    def push(self, value: Value) -> None:
        """Put a value on the stack; lazy values become real here."""
        self.stack.append(self.ctx.realize(value))

    def pop(self) -> Value:
        """Take the top of the stack."""
        return self.stack.pop()

    def pop_many(self, count: int) -> list[Value]:
        """Take `count` values; the last pushed comes last."""
        if count == 0:
            return []
        popped = self.stack[-count:]
        del self.stack[-count:]
        return popped

    def current(self) -> Instruction:
        """Return the instruction being evaluated (or about to be, before the first)."""
        return self.decoded.instructions[max(self.index - 1, 0)]

    def line(self) -> int:
        """Return the line that is being evaluated."""
        return self.current().line or self.decoded.code.co_firstlineno

    def kept_to_the_end(self) -> list[Value]:
        """Return what its names hold that does something when an exception which has left the frame is let go of."""
        held = (*self.locals.values(), *self.cells.values())
        return [value for value in held if any(_ends_noticeably(part) for part in parts_of(value))]

    def origin(self) -> Origin:
        """Return the user's line, with the lines that called it."""
        code = self.decoded.code
        caller = self.parent.origin() if self.parent is not None else None
        return Origin(code.co_filename, self.line(), code.co_name, caller)


def parts_of(value: Value) -> Iterator[object]:
    """Give a value and what is held by it, directly or in what it holds."""
    seen: set[int] = set()
    pending: list[object] = [value]
    while pending:
        part = pending.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            pending += [one for one in gc.get_referents(part) if isinstance(one, _HOLDERS)]


def _ends_noticeably(part: object) -> bool:
    return isinstance(part, SuspendedValue) and part.source is None and part.cleans_up()


_HOLDERS = (Value, Entry, FrameState, list, tuple, dict)  # what a value may hold another value in


def handled_in(frames: Sequence[FrameState]) -> Value | None:
    """Return what `sys.exc_info` would show: the exception of the innermost handler entered in these frames."""
    for frame in reversed(frames):
        for value in reversed(frame.stack):
            if isinstance(value, HandledValue):
                return value.exception
    return None


def may_handle_errors(frame: FrameState) -> bool:
    """Return whether an error at the instruction of a frame goes to an `except`, `finally` or `with` of the frame.

    Blocks of torch's settings that were entered here do not count: what runs a graph puts the settings back.
    """
    decoded = frame.decoded
    handler = decoded.handler_of[frame.current().index]
    while handler is not None:
        if decoded.instructions[handler.target].name == "PUSH_EXC_INFO":  # else it only puts the exception state back
            leaves = decoded.instructions[handler.target + 1].name == "WITH_EXCEPT_START"
            if frame.resumed or not leaves or not _leaves_settings(frame.stack[handler.depth - 1]):
                return True
        handler = decoded.handler_of[handler.target]
    return False


def cleans_up(decoded: Decoded, index: int) -> bool:
    """Return whether a generator that is suspended before an instruction does something when it is closed."""
    following = decoded.instructions[index]
    if following.name == "RESUME" and following.argument & 3 == 2:
        return True  # in a `yield from`, whose iterator is closed
    handler = decoded.handler_of[index - 1]
    while handler is not None:
        if decoded.instructions[handler.target].name == "PUSH_EXC_INFO":
            return True
        handler = decoded.handler_of[handler.target]
    return False


def _leaves_settings(leave: Value) -> bool:
    if isinstance(leave, BoundMethod):
        kind = leave.owner.python_type()
        return issubclass(kind, torch.no_grad | torch.enable_grad | torch.set_grad_enabled | torch.autocast)
    return isinstance(leave, LeaveBlock)


def kept_locals(frame: FrameState, target: int, *, all_of_them: bool = False) -> tuple[str, ...]:
    """Return the locals that the frame needs when it goes on, or in the handler around the call it stands after.

    all_of_them: whether a function that it calls may look at them.
    """
    live = live_locals(frame.decoded)[target]
    handler = frame.decoded.handler_of[target - 1] if target else None
    if handler is not None:
        live |= live_locals(frame.decoded)[handler.target]
    if all_of_them or _LOOK_AT_LOCALS.intersection(frame.decoded.code.co_names):
        return tuple(frame.locals)
    keep_first = frame.decoded.code.co_varnames[:1] if "__class__" in frame.cells else ()
    return tuple(name for name in frame.locals if name in live or name in keep_first)


def in_order_of_ends(frame: FrameState, names: set[str]) -> tuple[str, ...]:
    """Return names of locals, the last first: a frame that ends lets go of its first variable first.

    What is handed on is a tuple, which lets go of its last element first.
    """
    variables = [name for name in frame.decoded.code.co_varnames if name in names]
    return (*variables[::-1], *(name for name in frame.locals if name in names and name not in variables))


def asks_again_for_locals(frame: FrameState, target: int) -> bool:
    """Return whether a frame that called `locals()` may do so again when it goes on at an instruction.

    Before Python 3.13 it would get the same dictionary, brought up to date.
    """
    if frame.locals_given is None or sys.version_info >= (3, 13):
        return False
    first = min([target, *(start for start, end in frame.decoded.loops if start <= target <= end)])
    names = {instruction.value for instruction in frame.decoded.instructions[first:] if type(instruction.value) is str}
    return not names.isdisjoint(_LOOK_AT_LOCALS)


_LOOK_AT_LOCALS = frozenset({"locals", "vars", "dir", "eval", "exec"})
