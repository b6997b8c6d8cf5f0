"""Rules of the opcodes that call and that make functions."""

import builtins
import sys
import types

from ...bytecode.instruction import Instruction
from ...values.constant import Known
from ...values.python.containers.mappings import DictValue
from ...values.python.containers.tuples import TupleValue
from ...values.python.objects.attributes import name_in_errors
from ...values.python.objects.functions import CellValue, FunctionValue
from ...values.python.operators import unary
from ...values.reasons import UNSUPPORTED_BYTECODE, SkipFrame
from ...values.value import Value, defines
from ..context.frame import NULL, FrameState
from .data import function_words, push_callable
from .opcode_table import opcode


def split_call(frame: FrameState, argument_count: int) -> tuple[Value, list[Value], dict[str, Value]]:
    """Take callable and arguments of a CALL off the stack; a method and its self come as the callable."""
    names = frame.keyword_names
    frame.keyword_names = ()
    values = frame.pop_many(argument_count)
    first, second = frame.pop_many(2)
    if sys.version_info >= (3, 13):
        callee = first
        if second is not NULL:
            values.insert(0, second)
    elif first is NULL:
        callee = second
    else:
        callee = first
        values.insert(0, second)
    split = len(values) - len(names)
    return callee, values[:split], dict(zip(names, values[split:], strict=True))


@opcode("KW_NAMES", last=(3, 12))
def do_KW_NAMES(frame: FrameState, instruction: Instruction) -> None:
    """Note the keyword names of the next CALL."""
    names = frame.decoded.code.co_consts[instruction.argument]
    assert isinstance(names, tuple)
    frame.keyword_names = names


@opcode("CALL")
def do_CALL(frame: FrameState, instruction: Instruction) -> None:
    """Call."""
    callee, args, kwargs = split_call(frame, instruction.argument)
    frame.push(frame.ctx.calls.call_and_push(callee, args, kwargs))


@opcode("CALL_KW", (3, 13))
def do_CALL_KW(frame: FrameState, instruction: Instruction) -> None:
    """Call with the keyword names on the stack."""
    names = frame.pop().constant()
    assert isinstance(names, tuple)
    frame.keyword_names = names
    do_CALL(frame, instruction)


@opcode("CALL_FUNCTION_EX")
def do_CALL_FUNCTION_EX(frame: FrameState, instruction: Instruction) -> None:
    """Call with `*args` and `**kwargs`."""
    callee, args, kwargs = split_star_call(frame, instruction)
    kind = args.python_type()
    if not defines(kind, "__iter__") and not defines(kind, "__getitem__"):
        words = f"{function_words(frame.ctx, callee)} argument after * must be an iterable, not {name_in_errors(kind)}"
        frame.ctx.throw(TypeError, words)
    positional, named = frame.ctx.realize(args).gathered(frame.ctx), keywords_of(frame, kwargs)
    frame.push(frame.ctx.calls.call_and_push(callee, positional, named))


def split_star_call(frame: FrameState, instruction: Instruction) -> tuple[Value, Value, Value | None]:
    """Take callable, positional and keyword containers of a starred call off the stack."""
    kwargs = frame.pop() if instruction.argument & 1 else None
    args = frame.pop()
    if sys.version_info >= (3, 13):
        frame.pop()
        return frame.pop(), args, kwargs
    callee = frame.pop()
    frame.pop()
    return callee, args, kwargs


def keywords_of(frame: FrameState, value: Value | None) -> dict[str, Value]:
    """Return the keywords that a mapping stands for."""
    if value is None:
        return {}
    if not isinstance(value, DictValue):
        value = frame.ctx.call(frame.ctx.known(dict), [value], {})
    assert isinstance(value, DictValue)
    pairs = [(entry.key, entry.value) for entry in value.read_all(frame.ctx).values()]
    if not all(issubclass(key.python_type(), str) for key, _ in pairs):
        frame.ctx.throw(TypeError, "keywords must be strings")
    return {str(key.constant()): item for key, item in pairs}


@opcode("MAKE_FUNCTION")
def do_MAKE_FUNCTION(frame: FrameState, instruction: Instruction) -> None:
    """Make a function; the flags say which parts lie below the code object (none since 3.13)."""
    code = frame.pop().constant()
    assert isinstance(code, types.CodeType)  # the compiler puts one here
    flags = instruction.argument if sys.version_info < (3, 13) else 0
    cells = _cells(frame.pop()) if flags & 8 else []
    annotations = frame.pop() if flags & 4 else None
    keyword_defaults = frame.pop() if flags & 2 else None
    defaults = frame.pop() if flags & 1 else None
    function = FunctionValue(
        code,
        frame.namespace,
        cells,
        list(frame.ctx.unpack(defaults)) if defaults is not None else [],
        keywords_of(frame, keyword_defaults),
        name=code.co_name,
        qualified_name=code.co_qualname,
    )
    if annotations is not None:
        flat = frame.ctx.unpack(annotations)
        function.attributes["__annotations__"] = DictValue.of(frame.ctx, list(zip(flat[::2], flat[1::2], strict=True)))
    frame.push(function)


@opcode("SET_FUNCTION_ATTRIBUTE", (3, 13))
def do_SET_FUNCTION_ATTRIBUTE(frame: FrameState, instruction: Instruction) -> None:
    """Complete a function that MAKE_FUNCTION has just made."""
    function = frame.pop()
    part = frame.pop()
    assert isinstance(function, FunctionValue)
    if instruction.argument == 8:
        function.cells = _cells(part)
    elif instruction.argument == 4:
        flat = frame.ctx.unpack(part)
        function.attributes["__annotations__"] = DictValue.of(frame.ctx, list(zip(flat[::2], flat[1::2], strict=True)))
    elif instruction.argument == 2:
        function.keyword_defaults = keywords_of(frame, part)
    else:
        function.defaults = list(frame.ctx.unpack(part))
    frame.push(function)


def _cells(value: Value) -> list[CellValue]:
    assert isinstance(value, TupleValue)
    return [cell for cell in value.items if isinstance(cell, CellValue)]


@opcode("LOAD_BUILD_CLASS")
def do_LOAD_BUILD_CLASS(frame: FrameState, instruction: Instruction) -> None:
    """Push the builtin that makes classes; calling it breaks."""
    frame.push(Known(builtins.__build_class__))


@opcode("LOAD_ASSERTION_ERROR")
def do_LOAD_ASSERTION_ERROR(frame: FrameState, instruction: Instruction) -> None:
    """Push AssertionError."""
    frame.push(frame.ctx.known(AssertionError))


@opcode("LOAD_SUPER_ATTR", (3, 12))
def do_LOAD_SUPER_ATTR(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `super().name`."""
    callee, kind, instance = frame.pop_many(3)
    proxy = frame.ctx.call(callee, [kind, instance], {})
    value = proxy.get_attr(frame.ctx, str(instruction.value))
    if instruction.argument & 1:
        push_callable(frame, value)
    else:
        frame.push(value)


@opcode("CALL_INTRINSIC_1", (3, 12))
def do_CALL_INTRINSIC_1(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate the intrinsics that stand for old opcodes: 5 is unary plus, 6 is list to tuple, 3 stops iteration."""
    value = frame.pop()
    if instruction.argument == 5:
        frame.push(unary(frame.ctx, "+", value))
    elif instruction.argument == 6:
        frame.push(TupleValue(list(frame.ctx.unpack(value))))
    elif instruction.argument == 3:
        frame.push(value)
    else:
        raise SkipFrame(UNSUPPORTED_BYTECODE, f"CALL_INTRINSIC_1 {instruction.argument}")
