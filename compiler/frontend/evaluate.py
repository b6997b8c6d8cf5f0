"""Evaluate a frame: the loop over its instructions, exceptions included."""

from ..bytecode.instruction import Instruction
from ..values.constant import Constant
from ..values.python.objects.exceptions import ExceptionValue
from ..values.reasons import SIDE_EFFECT_CALL, Break, SkipFrame
from ..values.value import Raised, Value
from .context.frame import FrameState, may_handle_errors
from .context.recorder import Recorder
from .context.repeated_warnings import warnings_in_c
from .opcodes.opcode_rules import RULES


class StopAtBreak(BaseException):
    """The instruction that must run in plain Python is reached; frames: from the outermost to the one it is in."""

    def __init__(self, frames: tuple[FrameState, ...]) -> None:
        self.frames = frames
        super().__init__()


def run_chain(ctx: Recorder, frames: list[FrameState]) -> None:
    """Evaluate the innermost of some frames, then each caller with what came out of the frame inside it.

    frames: from the outermost in; the callers stand after their calls. Only the outermost is in it at the end.
    Raises as `run_frame`.
    """
    ctx.frames.stack.extend(frames[:-1])
    returned: Value | None = None
    raised: Raised | None = None
    while True:
        frame = frames[-1]
        try:
            if raised is not None:
                enter_handler(frame, raised)
            elif returned is not None:
                if not frame.drops:
                    frame.push(returned)
                frame.drops = False
            raised = None
            run_frame(ctx, frame)
            returned = frame.returned
        except Raised as error:
            raised = error
        if len(frames) == 1:
            break
        frames.pop()  # what only it held ends here
        ctx.frames.stack.pop()
    end_dropped(ctx)
    if raised is not None:
        try:
            raise raised
        finally:
            raised = None  # its traceback holds this frame


def run_frame(ctx: Recorder, frame: FrameState) -> None:
    """Evaluate until the frame returns or yields; raises Raised, Break or SkipFrame."""
    ctx.frames.stack.append(frame)
    try:
        _loop(ctx, frame)
    except (Break, SkipFrame) as signal:
        ctx.frames.note_stop(signal)
        if signal.origin is None:
            signal.origin = frame.origin()
        raise
    finally:
        ctx.frames.stack.pop()


def _loop(ctx: Recorder, frame: FrameState) -> None:
    instructions = frame.decoded.instructions
    while frame.returned is None and frame.yielded is None:
        if ctx.frames.dropped:
            end_dropped(ctx)
        instruction = instructions[frame.index]
        if ctx.steps == ctx.attempt.stop_at:
            raise StopAtBreak(tuple(ctx.frames.stack))
        frame.step = ctx.steps
        ctx.step()
        frame.index += 1
        try:
            RULES[instruction.name](frame, instruction)
        except Raised as raised:
            if isinstance(raised.value, ExceptionValue) and not raised.value.raised:
                raised.value.entered(ctx.frames.handled_exception())
            enter_handler(frame, raised)
        if ctx.frames.warned:
            warn_again(ctx, frame, instruction)


def warn_again(ctx: Recorder, frame: FrameState, instruction: Instruction) -> None:
    """Leave an instruction that warned to plain Python; where it may not be, let its warnings be given at every call.

    A filter may turn them into errors, which a handler of the program has to see.
    """
    noted = ctx.frames.warned
    handled = any(map(may_handle_errors, ctx.frames.stack))
    if not ctx.attempt.whole or handled or not all(warning.is_of_ours() for warning in noted):
        raise Break(SIDE_EFFECT_CALL, f"an operation that warns: {noted[0]}")
    line = instruction.line or frame.line()
    ctx.graph.warned += warnings_in_c(noted, frame, line, in_graph=False)
    noted.clear()


def end_dropped(ctx: Recorder) -> None:
    """Evaluate what plain Python does when objects end that the last instruction dropped."""
    while ctx.frames.dropped:
        ctx.frames.dropped.pop(0)()


def enter_handler(frame: FrameState, raised: Raised) -> None:
    """Go to the handler of the instruction that raised; without one the exception leaves the frame."""
    instruction = frame.current()
    handler = frame.decoded.handler_of[instruction.index]
    if isinstance(raised.value, ExceptionValue):
        bare = instruction.name == "RAISE_VARARGS" and not instruction.argument
        raised.value.passes(frame.origin(), again=bare or instruction.name == "RERAISE")
    if handler is None:
        frame.stack.clear()
        if isinstance(raised.value, ExceptionValue):
            raised.value.frames.append(frame)
        try:
            raise raised
        finally:
            del raised  # its traceback holds this frame
    del frame.stack[handler.depth :]
    if handler.keeps_position:
        frame.stack.append(Constant(instruction.offset))
    frame.stack.append(raised.value)
    frame.index = handler.target
    frame.keyword_names = ()
