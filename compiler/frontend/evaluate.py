"""Evaluate a frame: the loop over its instructions, exceptions included; and frames that suspend."""

import types

from ..values.constant import Constant, MethodOf
from ..values.exceptions import ExceptionValue
from ..values.reasons import UNSUPPORTED_OPERATION, Break, SkipFrame
from ..values.value import Arguments, CaptureContext, Keywords, Raised, Value
from . import opcodes_call, opcodes_control, opcodes_data, opcodes_exception  # noqa: F401 - fill the table
from .frame import FrameState
from .opcode_table import rules_for
from .recorder import Recorder

_RULES = rules_for()


class StopAtBreak(BaseException):
    """The instruction that must run in plain Python is reached; frames: from the outermost to the one it is in."""

    def __init__(self, frames: tuple[FrameState, ...]) -> None:
        self.frames = frames
        super().__init__()


def run_chain(ctx: Recorder, frames: list[FrameState]) -> None:
    """Evaluate the innermost of some frames, then each caller with what came out of the frame inside it.

    frames: from the outermost in; the callers stand after their calls.  Raises as `run_frame`.
    """
    ctx.frames.extend(frames[:-1])
    inner: FrameState | None = None
    raised: Raised | None = None
    for frame in reversed(frames):
        if inner is not None:
            ctx.frames.pop()
        try:
            if raised is not None:
                enter_handler(frame, raised)
            elif inner is not None:
                assert inner.returned is not None
                frame.push(inner.returned)
            raised = None
            run_frame(ctx, frame)
        except Raised as error:
            raised = error
        inner = frame
    if raised is not None:
        raise raised


def run_frame(ctx: Recorder, frame: FrameState) -> None:
    """Evaluate until the frame returns or yields; raises Raised, Break or SkipFrame."""
    ctx.frames.append(frame)
    try:
        _loop(ctx, frame)
    except (Break, SkipFrame) as signal:
        if signal is not ctx.stopped_by:
            ctx.stopped_by, ctx.stopped = signal, tuple(ctx.frames)
        if signal.origin is None:
            signal.origin = frame.origin()
        raise
    finally:
        ctx.frames.pop()


def _loop(ctx: Recorder, frame: FrameState) -> None:
    instructions = frame.decoded.instructions
    while frame.returned is None and frame.yielded is None:
        instruction = instructions[frame.index]
        if ctx.steps == ctx.stop_at:
            raise StopAtBreak(tuple(ctx.frames))
        frame.step = ctx.steps
        ctx.step()
        frame.index += 1
        try:
            _RULES[instruction.name](frame, instruction)
        except Raised as raised:
            enter_handler(frame, raised)


def enter_handler(frame: FrameState, raised: Raised) -> None:
    """Go to the handler of the instruction that raised; without one the exception leaves the frame."""
    instruction = frame.current()
    handler = frame.decoded.handler_of[instruction.index]
    if handler is None:
        raise raised
    del frame.stack[handler.depth :]
    if handler.keeps_position:
        frame.stack.append(Constant(instruction.offset))
    frame.stack.append(raised.value)
    frame.index = handler.target
    frame.keyword_names = ()


class GeneratorValue(Value):
    """A generator of an inlined function: a frame that stops at each yield."""

    def __init__(self, ctx: Recorder, frame: FrameState) -> None:
        self.ctx = ctx
        self.frame = frame
        self.started = False
        self.finished = False

    def python_type(self) -> type:
        """Return the generator type."""
        return types.GeneratorType

    def iterate(self, ctx: CaptureContext) -> Value:
        """Return itself."""
        return self

    def truth(self, ctx: CaptureContext) -> bool:
        """Generators are true."""
        return True

    def next(self, ctx: CaptureContext) -> Value:
        """Run to the next yield."""
        return self._resume(Constant(None))

    def _resume(self, sent: Value) -> Value:
        if self.finished:
            self.ctx.throw(StopIteration)
        if self.started:
            self.frame.stack.append(sent)
        self.started = True
        return self._run()

    def _run(self) -> Value:
        self.frame.yielded = None
        self.frame.parent = self.ctx.frames[-1] if self.ctx.frames else None
        try:
            run_frame(self.ctx, self.frame)
        except Raised as raised:
            self.finished = True
            if issubclass(raised.value.python_type(), StopIteration):
                self.ctx.throw(RuntimeError, "generator raised StopIteration")
            raise
        if self.frame.yielded is not None:
            return self.frame.yielded
        self.finished = True
        assert self.frame.returned is not None
        result = self.frame.returned
        is_none = isinstance(result, Constant) and result.value is None
        raise Raised(ExceptionValue(StopIteration, [] if is_none else [result]))

    def throw_in(self, exception: Value) -> Value:
        """Raise an exception at the yield where the generator stands."""
        if self.finished or not self.started:
            self.finished = True
            raise Raised(exception)
        try:
            enter_handler(self.frame, Raised(exception))
        except Raised:
            self.finished = True
            raise
        return self._run()

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate send, throw, close and the explicit special methods."""
        if name == "__next__":
            return self.next(ctx)
        if name == "__iter__":
            return self
        if name == "send":
            return self._resume(ctx.real(args[0]))
        if name == "throw":
            exception = ctx.real(args[1] if len(args) > 1 else args[0])
            if isinstance(exception, ExceptionValue):
                return self.throw_in(exception)
        if name == "close":
            return self._close()
        raise Break(UNSUPPORTED_OPERATION, f"generator method {name!r}")

    def _close(self) -> Value:
        if self.started and not self.finished:
            try:
                self.throw_in(ExceptionValue(GeneratorExit, []))
            except Raised as raised:
                if not issubclass(raised.value.python_type(), GeneratorExit | StopIteration):
                    raise
        self.finished = True
        return Constant(None)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give the methods."""
        return MethodOf(self, name)


def make_generator(ctx: Recorder, frame: FrameState) -> Value:
    """Return the generator over a fresh frame."""
    return GeneratorValue(ctx, frame)
