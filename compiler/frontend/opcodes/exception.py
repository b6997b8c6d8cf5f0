"""Rules of the opcodes of try, except, finally, raise and with; and those that only make the frame run eagerly."""

from ...bytecode.instruction import Instruction
from ...bytecode.versions import OPCODES, RUNNING
from ...values.constant import Constant
from ...values.python.containers.tuples import TupleValue
from ...values.python.objects.attributes import class_lookup, name_in_errors
from ...values.python.objects.classes import ClassValue
from ...values.python.objects.exception_groups import match_group, what_remains
from ...values.python.objects.exceptions import ExceptionValue, TracebackValue
from ...values.python.objects.instances import ObjectValue
from ...values.reasons import UNSUPPORTED_BYTECODE, UNSUPPORTED_OBJECT, Break, SkipFrame
from ...values.torch.modes import LeaveBlock, block_of
from ...values.value import Raised, Value, defines
from ..context.frame import FrameState, HandledValue
from ..context.frame_stack import FrameStack
from ..context.lifetimes import break_where_handled
from .opcode_table import opcode, rules_for


@opcode("PUSH_EXC_INFO")
def do_PUSH_EXC_INFO(frame: FrameState, instruction: Instruction) -> None:
    """Enter a handler."""
    exception = frame.pop()
    frame.stack.append(HandledValue(exception))
    frame.stack.append(exception)


@opcode("POP_EXCEPT")
def do_POP_EXCEPT(frame: FrameState, instruction: Instruction) -> None:
    """Leave a handler."""
    state, frames = frame.stack[-1], frame.ctx.frames
    if isinstance(state, HandledValue) and isinstance(frames, FrameStack):
        break_where_handled(frames.stack, state.exception, frames.given)
    frame.pop()


@opcode("CHECK_EXC_MATCH")
def do_CHECK_EXC_MATCH(frame: FrameState, instruction: Instruction) -> None:
    """Test the exception against the classes of an `except`."""
    pattern = frame.pop()
    classes = pattern.elements(frame.ctx) if isinstance(pattern, TupleValue) else [pattern]
    kind = frame.stack[-1].python_type()
    matches = []
    for value in classes:
        if not isinstance(value, ClassValue) or not issubclass(value.kind, BaseException):
            frame.ctx.throw(TypeError, "catching classes that do not inherit from BaseException is not allowed")
        matches.append(issubclass(kind, value.kind))
    frame.push(Constant(any(matches)))


@opcode("RERAISE")
def do_RERAISE(frame: FrameState, instruction: Instruction) -> None:
    """Raise the exception on the stack again."""
    raise Raised(frame.pop())


@opcode("RAISE_VARARGS")
def do_RAISE_VARARGS(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `raise`."""
    values = frame.pop_many(instruction.argument)
    handled = frame.ctx.frames.handled_exception()
    if not values:
        if handled is None:
            frame.ctx.throw(RuntimeError, "No active exception to reraise")
        raise Raised(handled)
    exception = _instance(frame, values[0], "exceptions must derive from BaseException")
    if len(values) == 2:
        cause = values[1]
        if not isinstance(cause, Constant) or cause.value is not None:
            cause = _instance(frame, cause, "exception causes must derive from BaseException")
        exception.set_attr(frame.ctx, "__cause__", cause)
    exception.entered(handled)
    raise Raised(exception)


def _instance(frame: FrameState, value: Value, words: str) -> ExceptionValue:
    """Return the exception that `raise` is given, made if it is given a class."""
    if isinstance(value, ClassValue) and issubclass(value.kind, BaseException):
        kind, value = value.kind, frame.ctx.realize(frame.ctx.call(value, [], {}))
        if not isinstance(value, ExceptionValue):
            raised_kind = value.python_type()
            words = f"calling {kind!r} should have returned an instance of BaseException, not {raised_kind!r}"
    if not isinstance(value, ExceptionValue):
        if issubclass(value.python_type(), BaseException):
            value.unsupported("raise", UNSUPPORTED_OBJECT)
        frame.ctx.throw(TypeError, words)
    return value


@opcode("CHECK_EG_MATCH")
def do_CHECK_EG_MATCH(frame: FrameState, instruction: Instruction) -> None:
    """Divide the exceptions between an `except*` and what follows it."""
    exception, pattern = frame.pop_many(2)
    rest, match = match_group(frame.ctx, exception, pattern)
    frame.push(rest)
    frame.push(match)
    if isinstance(match, ExceptionValue):
        next(value for value in reversed(frame.stack) if isinstance(value, HandledValue)).exception = match


@opcode("PREP_RERAISE_STAR", last=(3, 11))
def do_PREP_RERAISE_STAR(frame: FrameState, instruction: Instruction) -> None:
    """Put together what is raised after the `except*` clauses."""
    original, raised = frame.pop_many(2)
    frame.push(what_remains(frame.ctx, original, frame.ctx.unpack(raised)))


@opcode("CALL_INTRINSIC_2", (3, 12))
def do_CALL_INTRINSIC_2(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate the intrinsic that ends `except*`; the others are of type parameters, and the frame runs eagerly."""
    if instruction.argument != 1:
        _refuse(frame, instruction)
    original, raised = frame.pop_many(2)
    frame.push(what_remains(frame.ctx, original, frame.ctx.unpack(raised)))


@opcode("BEFORE_WITH")
def do_BEFORE_WITH(frame: FrameState, instruction: Instruction) -> None:
    """Enter a context manager: push its `__exit__`, then what `__enter__` gives."""
    manager = frame.pop()
    block = block_of(manager)
    if block is not None:
        frame.push(LeaveBlock(block))
        frame.push(block.enter(frame.ctx))
        return
    if not isinstance(manager, ObjectValue) and not defines(manager.python_type(), "__enter__"):
        words = f"'{name_in_errors(manager.python_type())}' object does not support the context manager protocol"
        frame.ctx.throw(TypeError, words)
    if not isinstance(manager, ObjectValue):
        raise Break(UNSUPPORTED_OBJECT, f"with {manager.describe()}")
    leave = manager.method(frame.ctx, "__exit__")
    enter = manager.method(frame.ctx, "__enter__")
    if leave is None or enter is None:
        for name, words in (("__enter__", ""), ("__exit__", " (missed __exit__ method)")):
            if class_lookup(manager.kind, name)[0] is None:
                what = f"'{name_in_errors(manager.kind)}' object does not support the context manager protocol{words}"
                frame.ctx.throw(TypeError, what)
        raise Break(UNSUPPORTED_OBJECT, f"with {manager.describe()}")
    frame.push(leave)
    frame.push(frame.ctx.calls.call_and_push(enter, [], {}))


@opcode("WITH_EXCEPT_START")
def do_WITH_EXCEPT_START(frame: FrameState, instruction: Instruction) -> None:
    """Call `__exit__` with the exception."""
    exception = frame.stack[-1]
    leave = frame.stack[-4]
    kind = frame.ctx.known(exception.python_type())
    frame.push(frame.ctx.calls.call_and_push(leave, [kind, exception, TracebackValue(exception)], {}))


@opcode("CLEANUP_THROW", (3, 12))
def do_CLEANUP_THROW(frame: FrameState, instruction: Instruction) -> None:
    """End a `yield from` into which an exception was thrown: a StopIteration gives its value, others go on."""
    raised = frame.pop_many(3)[2]
    if not issubclass(raised.python_type(), StopIteration):
        raise Raised(raised)
    frame.push(Constant(None))
    frame.push(raised.get_attr(frame.ctx, "value"))


def _refuse(frame: FrameState, instruction: Instruction) -> None:
    raise SkipFrame(UNSUPPORTED_BYTECODE, instruction.name)


_EAGER = """
GET_AITER GET_ANEXT BEFORE_ASYNC_WITH END_ASYNC_FOR GET_AWAITABLE
ASYNC_GEN_WRAP PRINT_EXPR IMPORT_STAR INTERPRETER_EXIT RESERVED
EXIT_INIT_CHECK ENTER_EXECUTOR
""".split()
for _name in _EAGER:  # module code, coroutines: the frame runs eagerly
    opcode(_name)(_refuse)


def missing_rules(version: tuple[int, int] = RUNNING) -> frozenset[str]:
    """Return the opcodes of a version that have no rule; empty, says a test."""
    return OPCODES[version] - frozenset(rules_for(version))
