"""Rules of the opcodes that load, store, build, unpack and subscript."""

import itertools
import sys
from collections.abc import Iterator

from ...bytecode.instruction import Instruction
from ...values.constant import Constant, MethodOf
from ...values.identities import is_same
from ...values.library.builtin_calls import make_slice
from ...values.python.containers.lists import ListValue
from ...values.python.containers.mappings import DictValue, pairs_of
from ...values.python.containers.sets import SetValue
from ...values.python.containers.tuples import TupleValue
from ...values.python.objects.attributes import NativeMethod, name_in_errors, told_name
from ...values.python.objects.exceptions import attribute_of
from ...values.python.objects.functions import CellValue
from ...values.python.operators import binary, compare, unary
from ...values.python.texts import formatted, text_of
from ...values.reasons import TEXT, Break
from ...values.value import CaptureContext, Raised, Value, defines, elements_of
from ..context.frame import NULL, FrameState, HandledValue
from ..context.frame_stack import FrameStack
from ..context.lifetimes import break_where_noticed
from .opcode_table import opcode


def _name(instruction: Instruction) -> str:
    assert isinstance(instruction.value, str)
    return instruction.value


def _names(instruction: Instruction) -> tuple[str, ...]:
    assert isinstance(instruction.value, tuple)
    return instruction.value


@opcode("NOP")
@opcode("RESUME")
@opcode("PRECALL", last=(3, 11))
@opcode("CACHE")
@opcode("EXTENDED_ARG")
def do_nothing(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate an opcode without effect on values."""


def _let_go(frame: FrameState, value: Value | None) -> None:
    """Break if the end of what a name or the stack lets go of can be noticed."""
    frames = frame.ctx.frames
    assert isinstance(frames, FrameStack)
    break_where_noticed(frames.stack, value, frames.given)


@opcode("POP_TOP")
def do_POP_TOP(frame: FrameState, instruction: Instruction) -> None:
    """Drop the top."""
    _let_go(frame, frame.stack[-1])
    frame.pop()


@opcode("PUSH_NULL")
def do_PUSH_NULL(frame: FrameState, instruction: Instruction) -> None:
    """Push NULL."""
    frame.stack.append(NULL)


@opcode("COPY")
def do_COPY(frame: FrameState, instruction: Instruction) -> None:
    """Push a copy of a deeper entry; that of a handler's state takes its place: what is raised on leaves it by that."""
    value = frame.stack[-instruction.argument]
    if isinstance(value, HandledValue):
        frame.stack[-instruction.argument] = Constant(None)  # code that goes on behind here must not enter it again
    frame.stack.append(value)


@opcode("SWAP")
def do_SWAP(frame: FrameState, instruction: Instruction) -> None:
    """Swap the top with a deeper entry."""
    depth = instruction.argument
    frame.stack[-1], frame.stack[-depth] = frame.stack[-depth], frame.stack[-1]


@opcode("LOAD_CONST")
def do_LOAD_CONST(frame: FrameState, instruction: Instruction) -> None:
    """Push a constant of the code."""
    frame.push(_constant(frame.ctx, instruction.value))


def _constant(ctx: CaptureContext, value: object) -> Value:
    """Return a constant of the code; tuples among them are the same objects at every call."""
    if type(value) is not tuple:
        return ctx.known(value)
    constant = TupleValue([_constant(ctx, item) for item in value])
    constant.of_code = value
    return constant


@opcode("LOAD_FAST")
@opcode("LOAD_FAST_CHECK", (3, 12))
def do_LOAD_FAST(frame: FrameState, instruction: Instruction) -> None:
    """Push a local."""
    _push_local(frame, _name(instruction))


def _push_local(frame: FrameState, name: str) -> None:
    """Push what a slot holds: since 3.13 that may be a cell, for a closure that is being made."""
    if name in frame.cells:
        frame.stack.append(frame.cells[name])
        return
    if name not in frame.locals:
        message = f"cannot access local variable '{name}' where it is not associated with a value"
        frame.ctx.throw(UnboundLocalError, message)
    value = frame.ctx.realize(frame.locals[name])
    frame.locals[name] = value
    frame.stack.append(value)


@opcode("LOAD_FAST_LOAD_FAST", (3, 13))
def do_LOAD_FAST_LOAD_FAST(frame: FrameState, instruction: Instruction) -> None:
    """Push two locals."""
    for name in _names(instruction):
        _push_local(frame, name)


@opcode("LOAD_FAST_AND_CLEAR", (3, 12))
def do_LOAD_FAST_AND_CLEAR(frame: FrameState, instruction: Instruction) -> None:
    """Push a local, or NULL, and unbind it (inlined comprehensions)."""
    frame.stack.append(frame.locals.pop(_name(instruction), NULL))


@opcode("STORE_FAST")
def do_STORE_FAST(frame: FrameState, instruction: Instruction) -> None:
    """Bind a local."""
    _store_local(frame, _name(instruction))


def _store_local(frame: FrameState, name: str) -> None:
    """Take the value of a local off the stack; a NULL makes it unbound again."""
    _let_go(frame, frame.locals.get(name))
    value = frame.pop()
    if value is NULL:
        frame.locals.pop(name, None)
    else:
        frame.locals[name] = value


@opcode("STORE_FAST_STORE_FAST", (3, 13))
def do_STORE_FAST_STORE_FAST(frame: FrameState, instruction: Instruction) -> None:
    """Bind two locals."""
    for name in _names(instruction):
        _store_local(frame, name)


@opcode("STORE_FAST_LOAD_FAST", (3, 13))
def do_STORE_FAST_LOAD_FAST(frame: FrameState, instruction: Instruction) -> None:
    """Bind one local, push another."""
    stored, loaded = _names(instruction)
    _store_local(frame, stored)
    _push_local(frame, loaded)


@opcode("DELETE_FAST")
def do_DELETE_FAST(frame: FrameState, instruction: Instruction) -> None:
    """Unbind a local."""
    name = _name(instruction)
    _let_go(frame, frame.locals.get(name))
    if frame.locals.pop(name, None) is None:
        message = f"cannot access local variable '{name}' where it is not associated with a value"
        frame.ctx.throw(UnboundLocalError, message)


@opcode("MAKE_CELL")
def do_MAKE_CELL(frame: FrameState, instruction: Instruction) -> None:
    """Turn a local into a cell."""
    name = _name(instruction)
    frame.cells[name] = CellValue(frame.locals.pop(name, None))


@opcode("COPY_FREE_VARS")
def do_COPY_FREE_VARS(frame: FrameState, instruction: Instruction) -> None:
    """Bring the closure's cells into the frame."""
    frame.cells.update(zip(frame.decoded.code.co_freevars, frame.free_cells, strict=True))


@opcode("LOAD_CLOSURE", last=(3, 12))
def do_LOAD_CLOSURE(frame: FrameState, instruction: Instruction) -> None:
    """Push a cell."""
    frame.stack.append(frame.cells[_name(instruction)])


@opcode("LOAD_DEREF")
def do_LOAD_DEREF(frame: FrameState, instruction: Instruction) -> None:
    """Push the content of a cell."""
    frame.push(_filled(frame, _name(instruction)).load(frame.ctx, _name(instruction)))


def _filled(frame: FrameState, name: str) -> CellValue:
    """Return a cell of the frame that is not empty."""
    cell = frame.cells[name]
    if cell.content is None and name in frame.decoded.code.co_freevars:
        words = f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
        frame.ctx.throw(NameError, words, name=name)
    if cell.content is None:
        words = f"cannot access local variable '{name}' where it is not associated with a value"
        frame.ctx.throw(UnboundLocalError, words)
    return cell


@opcode("STORE_DEREF")
def do_STORE_DEREF(frame: FrameState, instruction: Instruction) -> None:
    """Set the content of a cell."""
    frame.cells[_name(instruction)].store(frame.ctx, frame.pop())


@opcode("DELETE_DEREF")
def do_DELETE_DEREF(frame: FrameState, instruction: Instruction) -> None:
    """Empty a cell."""
    _filled(frame, _name(instruction)).store(frame.ctx, None)


@opcode("LOAD_GLOBAL")
def do_LOAD_GLOBAL(frame: FrameState, instruction: Instruction) -> None:
    """Push a global or builtin; the low bit asks for a NULL below it (above it in 3.13)."""
    value = frame.ctx.effects.global_value(frame.namespace, _name(instruction))
    if instruction.argument & 1:
        push_callable(frame, value)
    else:
        frame.push(value)


def push_callable(frame: FrameState, value: Value) -> None:
    """Push a callable with its NULL, in the order of the running version."""
    if sys.version_info >= (3, 13):
        frame.push(value)
        frame.stack.append(NULL)
    else:
        frame.stack.append(NULL)
        frame.push(value)


@opcode("STORE_GLOBAL")
def do_STORE_GLOBAL(frame: FrameState, instruction: Instruction) -> None:
    """Assign a global."""
    frame.ctx.effects.set_global(frame.namespace, _name(instruction), frame.pop())


@opcode("DELETE_GLOBAL")
def do_DELETE_GLOBAL(frame: FrameState, instruction: Instruction) -> None:
    """Delete a global."""
    frame.ctx.effects.set_global(frame.namespace, _name(instruction), None)


@opcode("LOAD_ATTR")
def do_LOAD_ATTR(frame: FrameState, instruction: Instruction) -> None:
    """Push an attribute; since 3.12 the low bit asks for a callable with its NULL."""
    owner = frame.pop()
    value = attribute_of(frame.ctx, owner, _name(instruction))
    if sys.version_info >= (3, 12) and instruction.argument & 1:
        push_callable(frame, _to_be_called(owner, value))
    else:
        frame.push(value)


@opcode("LOAD_METHOD", last=(3, 11))
def do_LOAD_METHOD(frame: FrameState, instruction: Instruction) -> None:
    """Push a method, bound, above a NULL."""
    owner = frame.pop()
    value = attribute_of(frame.ctx, owner, _name(instruction))
    frame.stack.append(NULL)
    frame.push(_to_be_called(owner, value))


def _to_be_called(owner: Value, method: Value) -> Value:
    """Return a method that is loaded to be called: Python binds none in C to the object for that."""
    if isinstance(method, MethodOf | NativeMethod) and method.owner is owner and method.source is None:
        method.bound = False
    return method


@opcode("STORE_ATTR")
def do_STORE_ATTR(frame: FrameState, instruction: Instruction) -> None:
    """Assign an attribute."""
    owner = frame.pop()
    owner.set_attr(frame.ctx, _name(instruction), frame.pop())


@opcode("DELETE_ATTR")
def do_DELETE_ATTR(frame: FrameState, instruction: Instruction) -> None:
    """Delete an attribute."""
    frame.pop().del_attr(frame.ctx, _name(instruction))


@opcode("BINARY_SUBSCR")
def do_BINARY_SUBSCR(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `a[b]`."""
    owner, key = frame.pop_many(2)
    frame.push(owner.get_item(frame.ctx, key))


@opcode("BINARY_SLICE", (3, 12))
def do_BINARY_SLICE(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `a[b:c]`."""
    owner, start, stop = frame.pop_many(3)
    frame.push(owner.get_item(frame.ctx, make_slice(frame.ctx, [start, stop, Constant(None)])))


@opcode("STORE_SLICE", (3, 12))
def do_STORE_SLICE(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `a[b:c] = v`."""
    value, owner, start, stop = frame.pop_many(4)
    owner.set_item(frame.ctx, make_slice(frame.ctx, [start, stop, Constant(None)]), value)


@opcode("STORE_SUBSCR")
def do_STORE_SUBSCR(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `a[b] = v`."""
    value, owner, key = frame.pop_many(3)
    owner.set_item(frame.ctx, key, value)


@opcode("DELETE_SUBSCR")
def do_DELETE_SUBSCR(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `del a[b]`."""
    owner, key = frame.pop_many(2)
    owner.del_item(frame.ctx, key)


@opcode("BINARY_OP")
def do_BINARY_OP(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate an operator; numbers from 13 on are the assigning forms."""
    left, right = frame.pop_many(2)
    symbol = BINARY_SYMBOLS[instruction.argument % 13]
    frame.push(binary(frame.ctx, symbol, left, right, inplace=instruction.argument >= 13))


BINARY_SYMBOLS = ("+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^")


@opcode("UNARY_NEGATIVE")
def do_UNARY_NEGATIVE(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `-a`."""
    frame.push(unary(frame.ctx, "-", frame.pop()))


@opcode("UNARY_POSITIVE", last=(3, 11))
def do_UNARY_POSITIVE(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `+a`."""
    frame.push(unary(frame.ctx, "+", frame.pop()))


@opcode("UNARY_INVERT")
def do_UNARY_INVERT(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `~a`."""
    frame.push(unary(frame.ctx, "~", frame.pop()))


@opcode("UNARY_NOT")
def do_UNARY_NOT(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `not a`."""
    frame.push(Constant(not frame.pop().truth(frame.ctx)))


@opcode("TO_BOOL", (3, 13))
def do_TO_BOOL(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `bool(a)`, unless a jump follows that asks for the truth itself: a break there has its two branches."""
    following = frame.decoded.instructions[instruction.index + 1].name
    if following not in ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE"):
        frame.push(Constant(frame.pop().truth(frame.ctx)))


@opcode("COMPARE_OP")
def do_COMPARE_OP(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate a comparison."""
    left, right = frame.pop_many(2)
    symbol = str(instruction.value).removeprefix("bool(").removesuffix(")")
    frame.push(compare(frame.ctx, symbol, left, right))


@opcode("IS_OP")
def do_IS_OP(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `is` or `is not`."""
    left, right = frame.pop_many(2)
    frame.push(Constant(is_same(frame.ctx, left, right) != bool(instruction.argument)))


@opcode("CONTAINS_OP")
def do_CONTAINS_OP(frame: FrameState, instruction: Instruction) -> None:
    """Evaluate `in` or `not in`."""
    item, owner = frame.pop_many(2)
    frame.push(Constant(owner.contains(frame.ctx, item) != bool(instruction.argument)))


@opcode("BUILD_TUPLE")
def do_BUILD_TUPLE(frame: FrameState, instruction: Instruction) -> None:
    """Make a tuple."""
    frame.push(TupleValue(frame.pop_many(instruction.argument)))


@opcode("BUILD_LIST")
def do_BUILD_LIST(frame: FrameState, instruction: Instruction) -> None:
    """Make a list."""
    frame.push(ListValue(frame.pop_many(instruction.argument)))


@opcode("BUILD_SET")
def do_BUILD_SET(frame: FrameState, instruction: Instruction) -> None:
    """Make a set."""
    frame.push(SetValue.of(frame.ctx, frame.pop_many(instruction.argument)))


@opcode("BUILD_MAP")
def do_BUILD_MAP(frame: FrameState, instruction: Instruction) -> None:
    """Make a dict."""
    flat = frame.pop_many(2 * instruction.argument)
    frame.push(DictValue.of(frame.ctx, list(zip(flat[::2], flat[1::2], strict=True))))


@opcode("BUILD_CONST_KEY_MAP")
def do_BUILD_CONST_KEY_MAP(frame: FrameState, instruction: Instruction) -> None:
    """Make a dict from a tuple of keys."""
    keys = frame.ctx.unpack(frame.pop())
    values = frame.pop_many(instruction.argument)
    frame.push(DictValue.of(frame.ctx, list(zip(keys, values, strict=True))))


@opcode("BUILD_STRING")
def do_BUILD_STRING(frame: FrameState, instruction: Instruction) -> None:
    """Join the parts of an f-string."""
    parts = frame.pop_many(instruction.argument)
    frame.push(Constant("".join(str(part.constant()) for part in parts)))


@opcode("FORMAT_VALUE", last=(3, 12))
def do_FORMAT_VALUE(frame: FrameState, instruction: Instruction) -> None:
    """Format a part of an f-string."""
    specification = frame.pop().constant() if instruction.argument & 4 else ""
    value = frame.pop()
    frame.push(_formatted(frame, value, instruction.argument & 3, str(specification)))


@opcode("CONVERT_VALUE", (3, 13))
def do_CONVERT_VALUE(frame: FrameState, instruction: Instruction) -> None:
    """Apply `!s`, `!r` or `!a`."""
    frame.push(_converted(frame, frame.pop(), instruction.argument))


@opcode("FORMAT_SIMPLE", (3, 13))
def do_FORMAT_SIMPLE(frame: FrameState, instruction: Instruction) -> None:
    """Format a part of an f-string."""
    frame.push(_formatted(frame, frame.pop(), 0, ""))


@opcode("FORMAT_WITH_SPEC", (3, 13))
def do_FORMAT_WITH_SPEC(frame: FrameState, instruction: Instruction) -> None:
    """Format a part of an f-string by a specification."""
    specification = frame.pop().constant()
    frame.push(_formatted(frame, frame.pop(), 0, str(specification)))


def _converted(frame: FrameState, value: Value, conversion: int) -> Value:
    value = text_of(frame.ctx, value, "__str__" if conversion == 1 else "__repr__")
    if conversion != 3:
        return value
    text = str(value.constant())  # of which `ascii` would make the `repr` once more
    return Constant(text.encode("ascii", "backslashreplace").decode("ascii"))


def _formatted(frame: FrameState, value: Value, conversion: int, specification: str) -> Value:
    if conversion:
        value = _converted(frame, value, conversion)
    return formatted(frame.ctx, value, specification)


@opcode("BUILD_SLICE")
def do_BUILD_SLICE(frame: FrameState, instruction: Instruction) -> None:
    """Make a slice."""
    parts = frame.pop_many(instruction.argument)
    frame.push(make_slice(frame.ctx, [*parts, Constant(None)][:3]))


@opcode("LIST_APPEND")
def do_LIST_APPEND(frame: FrameState, instruction: Instruction) -> None:
    """Append in a comprehension."""
    value = frame.pop()
    frame.stack[-instruction.argument].call_method(frame.ctx, "append", [value], {})


@opcode("SET_ADD")
def do_SET_ADD(frame: FrameState, instruction: Instruction) -> None:
    """Add in a set comprehension."""
    value = frame.pop()
    frame.stack[-instruction.argument].call_method(frame.ctx, "add", [value], {})


@opcode("MAP_ADD")
def do_MAP_ADD(frame: FrameState, instruction: Instruction) -> None:
    """Set a key in a dict comprehension."""
    key, value = frame.pop_many(2)
    frame.stack[-instruction.argument].set_item(frame.ctx, key, value)


@opcode("LIST_EXTEND")
def do_LIST_EXTEND(frame: FrameState, instruction: Instruction) -> None:
    """Extend a list display."""
    value = frame.pop()
    kind = value.python_type()
    if not defines(kind, "__iter__") and not defines(kind, "__getitem__"):
        frame.ctx.throw(TypeError, f"Value after * must be an iterable, not {name_in_errors(kind)}")
    frame.stack[-instruction.argument].call_method(frame.ctx, "extend", [value], {})


@opcode("SET_UPDATE")
def do_SET_UPDATE(frame: FrameState, instruction: Instruction) -> None:
    """Update a set display."""
    value = frame.pop()
    frame.stack[-instruction.argument].call_method(frame.ctx, "update", [value], {})


@opcode("DICT_UPDATE")
@opcode("DICT_MERGE")
def do_DICT_UPDATE(frame: FrameState, instruction: Instruction) -> None:
    """Update a dict display, or the keywords of a call, where a key may come only once."""
    value = frame.pop()
    target = frame.stack[-instruction.argument]
    merging = instruction.name == "DICT_MERGE"
    if not isinstance(value, DictValue) and not defines(value.python_type(), "keys"):
        kind = told_name(value.python_type())
        words = f"{called(frame, instruction.argument)} argument after ** must be a mapping, not {kind}"
        frame.ctx.throw(TypeError, words if merging else f"'{kind}' object is not a mapping")
    if not merging and isinstance(value, DictValue):
        target.call_method(frame.ctx, "update", [value], {})
        return
    for key, item in pairs_of(frame.ctx, value):
        if merging and target.contains(frame.ctx, key):
            if sys.version_info < (3, 12) and frame.ctx.frames.handled_exception() is not None:
                frame.ctx.throw(KeyError, key.constant())  # CPython 3.11 does not recognise its own error there
            words = f"got multiple values for keyword argument '{key.constant()}'"
            frame.ctx.throw(TypeError, f"{called(frame, instruction.argument)} {words}")
        target.set_item(frame.ctx, key, item)


def called(frame: FrameState, depth: int) -> str:
    """Return how Python names the callable that keywords are merged for; depth: of the keywords on the stack."""
    place = depth + (3 if sys.version_info >= (3, 13) else 2)
    return function_words(frame.ctx, frame.stack[-place]) if len(frame.stack) >= place else "function"


def function_words(ctx: CaptureContext, value: Value) -> str:
    """Return a callable as Python names it in errors about its arguments."""
    name, module = (_description(ctx, value, attribute) for attribute in ("__qualname__", "__module__"))
    if name is None:
        raise Break(TEXT, f"the name of {value.describe()} in an error")
    return f"{name}()" if module in (None, "builtins") else f"{module}.{name}()"


def _description(ctx: CaptureContext, value: Value, attribute: str) -> object:
    """Return what a callable says of itself, None if it says nothing."""
    try:
        said = ctx.realize(value.get_attr(ctx, attribute))
    except Raised as raised:
        if issubclass(raised.value.python_type(), AttributeError):
            return None
        raise
    return said.constant()


@opcode("LIST_TO_TUPLE", last=(3, 11))
def do_LIST_TO_TUPLE(frame: FrameState, instruction: Instruction) -> None:
    """Make a tuple of a list."""
    frame.push(TupleValue(list(frame.ctx.unpack(frame.pop()))))


def _unpacked(frame: FrameState) -> Iterator[Value]:
    """Take a value off the stack and give its elements one by one."""
    return elements_of(frame.ctx, _iterator_on_top(frame))


def _iterator_on_top(frame: FrameState) -> Value:
    value = frame.pop()
    kind = value.python_type()
    if not defines(kind, "__iter__") and not defines(kind, "__getitem__"):
        frame.ctx.throw(TypeError, f"cannot unpack non-iterable {name_in_errors(kind)} object")
    return frame.ctx.realize(value.iterate(frame.ctx))


@opcode("UNPACK_SEQUENCE")
def do_UNPACK_SEQUENCE(frame: FrameState, instruction: Instruction) -> None:
    """Unpack exactly n values."""
    size = instruction.argument
    items = list(itertools.islice(_unpacked(frame), size + 1))
    if len(items) > size:
        frame.ctx.throw(ValueError, f"too many values to unpack (expected {size})")
    if len(items) < size:
        frame.ctx.throw(ValueError, f"not enough values to unpack (expected {size}, got {len(items)})")
    for item in reversed(items):
        frame.push(item)


@opcode("UNPACK_EX")
def do_UNPACK_EX(frame: FrameState, instruction: Instruction) -> None:
    """Unpack with a starred target."""
    before, after = instruction.argument & 255, instruction.argument >> 8
    iterator = _iterator_on_top(frame)
    items = list(itertools.islice(elements_of(frame.ctx, iterator), before))
    if len(items) == before:
        items += iterator.gathered(frame.ctx)  # the rest is made by `list`, which asks for an iterator anew
    if len(items) < before + after:
        message = f"not enough values to unpack (expected at least {before + after}, got {len(items)})"
        frame.ctx.throw(ValueError, message)
    end = len(items) - after
    for item in reversed([*items[:before], ListValue(items[before:end]), *items[end:]]):
        frame.push(item)


@opcode("GET_LEN")
def do_GET_LEN(frame: FrameState, instruction: Instruction) -> None:
    """Push the length of the subject of a match."""
    frame.push(frame.stack[-1].length(frame.ctx))
