"""Rules of the opcodes of try, except, finally, raise and with; and those that only make the frame run eagerly."""

import types

from ..bytecode.instruction import Instruction
from ..bytecode.versions import OPCODES, RUNNING
from ..values.classes import ClassValue
from ..values.constant import Constant
from ..values.exceptions import ExceptionValue
from ..values.objects import ObjectValue
from ..values.reasons import UNSUPPORTED_BYTECODE, UNSUPPORTED_OBJECT, Break, SkipFrame
from ..values.sequences import TupleValue
from ..values.value import Raised, Value
from .frame import FrameState
from .opcode_table import opcode, rules_for


class TracebackValue(Value):
    """The traceback that `__exit__` is given; it can be passed on, not looked into."""

    def python_type(self) -> type:
        """Return the traceback type."""
        return types.TracebackType

    def truth(self, ctx: object) -> bool:
        """Tracebacks are true."""
        return True


@opcode("PUSH_EXC_INFO")
def do_PUSH_EXC_INFO(frame: FrameState, instruction: Instruction) -> None:
    """Enter a handler."""
    exception = frame.pop()
    frame.stack.append(frame.handled[-1] if frame.handled else Constant(None))
    frame.stack.append(exception)
    frame.handled.append(exception)


@opcode("POP_EXCEPT")
def do_POP_EXCEPT(frame: FrameState, instruction: Instruction) -> None:
    """Leave a handler."""
    frame.pop()
    frame.handled.pop()


@opcode("CHECK_EXC_MATCH")
def do_CHECK_EXC_MATCH(frame: FrameState, instruction: Instruction) -> None:
    """Test the exception against the classes of an `except`."""
    wanted = frame.pop()
    classes = wanted.elements(frame.ctx) if isinstance(wanted, TupleValue) else [wanted]
    kind = frame.stack[-1].python_type()
    matches = []
    for value in classes:
        if not isinstance(value, ClassValue):
            raise Break(UNSUPPORTED_OBJECT, "an except clause with something that is no class")
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
    if not values:
        handled = _innermost_handled(frame)
        if handled is None:
            frame.ctx.throw(RuntimeError, "No active exception to reraise")
        raise Raised(handled)
    exception = values[0]
    if isinstance(exception, ClassValue):
        exception = frame.ctx.real(frame.ctx.call(exception, [], {}))
    if not isinstance(exception, ExceptionValue):
        frame.ctx.throw(TypeError, "exceptions must derive from BaseException")
    if len(values) == 2:
        exception.set_attr(frame.ctx, "__cause__", values[1])
    raise Raised(exception)


def _innermost_handled(frame: FrameState) -> Value | None:
    here: FrameState | None = frame
    while here is not None:
        if here.handled:
            return here.handled[-1]
        here = here.parent
    return None


@opcode("BEFORE_WITH")
def do_BEFORE_WITH(frame: FrameState, instruction: Instruction) -> None:
    """Enter a context manager: push its `__exit__`, then what `__enter__` gives."""
    manager = frame.pop()
    if not isinstance(manager, ObjectValue):
        raise Break(UNSUPPORTED_OBJECT, f"with {manager.describe()}")
    leave = manager.method(frame.ctx, "__exit__")
    enter = manager.method(frame.ctx, "__enter__")
    if leave is None or enter is None:
        raise Break(UNSUPPORTED_OBJECT, f"with {manager.describe()}")
    frame.push(leave)
    frame.push(frame.ctx.call_and_push(enter, [], {}))


@opcode("WITH_EXCEPT_START")
def do_WITH_EXCEPT_START(frame: FrameState, instruction: Instruction) -> None:
    """Call `__exit__` with the exception."""
    exception = frame.stack[-1]
    leave = frame.stack[-4]
    kind = frame.ctx.known(exception.python_type())
    frame.push(frame.ctx.call_and_push(leave, [kind, exception, TracebackValue()], {}))


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
GET_AITER GET_ANEXT BEFORE_ASYNC_WITH END_ASYNC_FOR GET_AWAITABLE CHECK_EG_MATCH SETUP_ANNOTATIONS STORE_NAME
DELETE_NAME LOAD_NAME PREP_RERAISE_STAR ASYNC_GEN_WRAP PRINT_EXPR IMPORT_STAR LOAD_CLASSDEREF INTERPRETER_EXIT RESERVED
LOAD_LOCALS CALL_INTRINSIC_2 LOAD_FROM_DICT_OR_GLOBALS LOAD_FROM_DICT_OR_DEREF
EXIT_INIT_CHECK ENTER_EXECUTOR
""".split()
for _name in _EAGER:  # class bodies, module code, coroutines, exception groups: the frame runs eagerly
    opcode(_name)(_refuse)


def missing_rules(version: tuple[int, int] = RUNNING) -> frozenset[str]:
    """Return the opcodes of a version that have no rule; empty, says a test."""
    return OPCODES[version] - frozenset(rules_for(version))


