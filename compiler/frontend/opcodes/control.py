"""Rules of the opcodes that jump, loop, return and yield."""

import collections.abc
import sys
from collections.abc import Hashable

from ...bytecode.instruction import Instruction
from ...values.constant import Constant, Known
from ...values.python.containers.mappings import DictValue
from ...values.python.containers.tuples import TupleValue
from ...values.python.objects.attributes import told_name
from ...values.reasons import UNSUPPORTED_BYTECODE, SkipFrame
from ...values.value import Raised, Value, defines
from ..context.assumptions import branch
from ..context.frame import FrameState
from ..context.frame_stack import FrameStack
from ..context.lifetimes import break_where_frame_ends
from .opcode_table import opcode


def _jump(frame: FrameState, instruction: Instruction) -> None:
    assert instruction.target is not None
    frame.index = instruction.target


@opcode("JUMP_FORWARD")
@opcode("JUMP_BACKWARD")
@opcode("JUMP_BACKWARD_NO_INTERRUPT")
def do_JUMP(frame: FrameState, instruction: Instruction) -> None:
    """Jump always."""
    _jump(frame, instruction)


@opcode("POP_JUMP_FORWARD_IF_TRUE", last=(3, 11))
@opcode("POP_JUMP_BACKWARD_IF_TRUE", last=(3, 11))
@opcode("POP_JUMP_IF_TRUE", (3, 12))
def do_POP_JUMP_IF_TRUE(frame: FrameState, instruction: Instruction) -> None:
    """Jump if the top is true."""
    if branch(frame, instruction, jumps_if=True):
        _jump(frame, instruction)


@opcode("POP_JUMP_FORWARD_IF_FALSE", last=(3, 11))
@opcode("POP_JUMP_BACKWARD_IF_FALSE", last=(3, 11))
@opcode("POP_JUMP_IF_FALSE", (3, 12))
def do_POP_JUMP_IF_FALSE(frame: FrameState, instruction: Instruction) -> None:
    """Jump if the top is false."""
    if not branch(frame, instruction, jumps_if=False):
        _jump(frame, instruction)


def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


@opcode("POP_JUMP_FORWARD_IF_NONE", last=(3, 11))
@opcode("POP_JUMP_BACKWARD_IF_NONE", last=(3, 11))
@opcode("POP_JUMP_IF_NONE", (3, 12))
def do_POP_JUMP_IF_NONE(frame: FrameState, instruction: Instruction) -> None:
    """Jump if the top is None."""
    if _is_none(frame.pop()):
        _jump(frame, instruction)


@opcode("POP_JUMP_FORWARD_IF_NOT_NONE", last=(3, 11))
@opcode("POP_JUMP_BACKWARD_IF_NOT_NONE", last=(3, 11))
@opcode("POP_JUMP_IF_NOT_NONE", (3, 12))
def do_POP_JUMP_IF_NOT_NONE(frame: FrameState, instruction: Instruction) -> None:
    """Jump if the top is not None."""
    if not _is_none(frame.pop()):
        _jump(frame, instruction)


@opcode("JUMP_IF_TRUE_OR_POP", last=(3, 11))
def do_JUMP_IF_TRUE_OR_POP(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `or`."""
    if frame.stack[-1].truth(frame.ctx):
        _jump(frame, instruction)
    else:
        frame.pop()


@opcode("JUMP_IF_FALSE_OR_POP", last=(3, 11))
def do_JUMP_IF_FALSE_OR_POP(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `and`."""
    if not frame.stack[-1].truth(frame.ctx):
        _jump(frame, instruction)
    else:
        frame.pop()


@opcode("GET_ITER")
def do_GET_ITER(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate iter()."""
    frame.push(frame.pop().iterate(frame.ctx))


@opcode("FOR_ITER")
def do_FOR_ITER(frame: FrameState, instruction: Instruction) -> None:
    """Take the next element, or leave the loop."""
    try:
        element = frame.stack[-1].next(frame.ctx)
    except Raised as raised:
        if not issubclass(raised.value.python_type(), StopIteration):
            raise
        if sys.version_info < (3, 12):
            frame.pop()
            _jump(frame, instruction)
        elif sys.version_info < (3, 13):  # END_FOR would pop the iterator and the missing element
            frame.pop()
            _jump(frame, instruction)
            frame.index += 1
        else:  # END_FOR pops the missing element; the POP_TOP after it pops the iterator
            _jump(frame, instruction)
            frame.index += 1
    else:
        frame.push(element)


@opcode("END_FOR", (3, 12))
def do_END_FOR(frame: FrameState, instruction: Instruction) -> None:
    """Reached only by falling into it, which FOR_ITER never lets happen."""
    raise SkipFrame(UNSUPPORTED_BYTECODE, "END_FOR")


@opcode("RETURN_VALUE")
def do_RETURN_VALUE(frame: FrameState, instruction: Instruction) -> None:
    """Leave the frame."""
    _leave(frame, frame.pop())


def _leave(frame: FrameState, returned: Value) -> None:
    frame.returned = returned
    frames = frame.ctx.frames
    assert isinstance(frames, FrameStack)
    break_where_frame_ends(frames.stack, frames.given)


@opcode("RETURN_CONST", (3, 12))
def do_RETURN_CONST(frame: FrameState, instruction: Instruction) -> None:
    """Leave the frame with a constant."""
    _leave(frame, frame.ctx.known(instruction.value))


@opcode("RETURN_GENERATOR")
def do_RETURN_GENERATOR(frame: FrameState, instruction: Instruction) -> None:
    """Start of a generator's frame; the POP_TOP after it takes the value pushed here."""
    frame.stack.append(Constant(None))


@opcode("YIELD_VALUE")
def do_YIELD_VALUE(frame: FrameState, instruction: Instruction) -> None:
    """Suspend the frame."""
    frame.yielded = frame.pop()


@opcode("GET_YIELD_FROM_ITER")
def do_GET_YIELD_FROM_ITER(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate iter() for `yield from`."""
    frame.push(frame.pop().iterate(frame.ctx))


@opcode("SEND")
def do_SEND(frame: FrameState, instruction: Instruction) -> None:
    """Drive the inner iterator of `yield from`."""
    sent = frame.pop()
    receiver = frame.stack[-1]
    try:
        plain = _is_none(sent)
        if not plain and not receiver.defines_operators() and not defines(receiver.python_type(), "send"):
            kind = told_name(receiver.python_type())
            frame.ctx.throw(AttributeError, f"'{kind}' object has no attribute 'send'")
        value = receiver.next(frame.ctx) if plain else receiver.call_method(frame.ctx, "send", [sent], {})
    except Raised as raised:
        if not issubclass(raised.value.python_type(), StopIteration):
            raise
        if sys.version_info < (3, 12):
            frame.pop()
        frame.push(raised.value.get_attr(frame.ctx, "value"))
        _jump(frame, instruction)
    else:
        frame.push(value)


@opcode("END_SEND", (3, 12))
def do_END_SEND(frame: FrameState, instruction: Instruction) -> None:
    """Drop the inner iterator below the value."""
    value = frame.pop()
    frame.pop()
    frame.push(value)


@opcode("MATCH_SEQUENCE")
def do_MATCH_SEQUENCE(frame: FrameState, instruction: Instruction) -> None:
    """Test whether the subject matches a sequence pattern."""
    kind = frame.stack[-1].python_type()
    frame.push(Constant(issubclass(kind, collections.abc.Sequence) and not issubclass(kind, str | bytes | bytearray)))


@opcode("MATCH_MAPPING")
def do_MATCH_MAPPING(frame: FrameState, instruction: Instruction) -> None:
    """Test whether the subject matches a mapping pattern."""
    frame.push(Constant(issubclass(frame.stack[-1].python_type(), collections.abc.Mapping)))


@opcode("MATCH_KEYS")
def do_MATCH_KEYS(frame: FrameState, instruction: Instruction) -> None:
    """Fetch the values of a mapping pattern, or None."""
    subject, keys = frame.stack[-2], frame.stack[-1]
    missing = Known(object())
    values: list[Value] = []
    seen = set[Hashable]()
    for key in frame.ctx.unpack(keys):
        token = key.hash_token(frame.ctx)
        if token in seen:
            frame.ctx.throw(ValueError, f"mapping pattern checks duplicate key ({key.constant()!r})")
        seen.add(token)
        if isinstance(subject, DictValue):
            value = subject.find(frame.ctx, key) or missing
        else:
            value = frame.ctx.realize(frame.ctx.call(subject.get_attr(frame.ctx, "get"), [key, missing], {}))
        if value is missing:
            frame.push(Constant(None))
            return
        values.append(value)
    frame.push(TupleValue(values))


def _positional_names(frame: FrameState, pattern: Value) -> list[str]:
    """Return the attributes that the positions of a class pattern stand for; the program may change them."""
    try:
        names = frame.ctx.realize(pattern.get_attr(frame.ctx, "__match_args__"))
    except Raised as raised:
        if not issubclass(raised.value.python_type(), AttributeError):
            raise
        return []
    kind = pattern.constant()
    assert isinstance(kind, type)
    if names.python_type() is not tuple:
        words = f"{kind.__name__}.__match_args__ must be a tuple (got {names.python_type().__name__})"
        frame.ctx.throw(TypeError, words)
    for name in frame.ctx.unpack(names):
        if frame.ctx.realize(name).python_type() is not str:
            words = f"__match_args__ elements must be strings (got {name.python_type().__name__})"
            frame.ctx.throw(TypeError, words)
    return [str(name.constant()) for name in frame.ctx.unpack(names)]


@opcode("MATCH_CLASS")
def do_MATCH_CLASS(frame: FrameState, instruction: Instruction) -> None:
    """Fetch the attributes of a class pattern, or None."""
    subject, pattern, names = frame.pop_many(3)
    kind = pattern.constant()
    assert isinstance(kind, type)
    fits = frame.ctx.call(frame.ctx.known(isinstance), [subject, pattern], {})
    if not frame.ctx.realize(fits).truth(frame.ctx):
        frame.push(Constant(None))
        return
    keywords = [str(name.constant()) for name in frame.ctx.unpack(names)]
    count = instruction.argument
    positional = _positional_names(frame, pattern)[:count] if count else []
    if len(positional) < count:
        if kind in (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple) and count == 1:
            frame.push(TupleValue([subject]))
            return
        plural = "" if len(positional) == 1 else "s"
        words = f"{kind.__name__}() accepts {len(positional)} positional sub-pattern{plural} ({count} given)"
        frame.ctx.throw(TypeError, words)
    for position, name in enumerate(parts := [*positional, *keywords]):
        if name in parts[:position]:
            frame.ctx.throw(TypeError, f"{kind.__name__}() got multiple sub-patterns for attribute '{name}'")
    values: list[Value] = []
    for name in parts:
        try:
            values.append(subject.get_attr(frame.ctx, name))
        except Raised as raised:
            if not issubclass(raised.value.python_type(), AttributeError):
                raise
            frame.push(Constant(None))
            return
    frame.push(TupleValue(values))
