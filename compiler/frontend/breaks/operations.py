"""The operation at a graph break, as plain Python: one rule per opcode that can break.

A rule says how many stack values the operation takes, writes the statements that do it, and names where the frame
goes on: with which values pushed, at which instruction, under which condition.
"""

import builtins
import sys
from collections.abc import Callable
from dataclasses import dataclass

from ...bytecode.instruction import Instruction
from ...values.constant import MethodOf
from ...values.python.objects.attributes import NativeMethod
from ...values.python.objects.functions import BoundMethod, FunctionValue
from ...values.reasons import CANNOT_RESUME, SkipFrame
from ...values.torch.modules import ModuleValue
from ...values.value import Value
from ..context.frame import NULL, FrameState
from ..opcodes.call import split_call, split_star_call
from ..opcodes.data import BINARY_SYMBOLS
from ..residual import Residual

END = type("End", (), {"__repr__": lambda self: "END"})()


@dataclass(frozen=True, slots=True)
class Branch:
    """One way to go on: test (an expression, empty for always), names pushed on the stack, next instruction."""

    test: str
    pushed: tuple[str, ...]
    target: int


@dataclass(frozen=True, slots=True)
class Operation:
    """What to do at the break. statements run under the frame's exception handler."""

    statements: tuple[str, ...]
    branches: tuple[Branch, ...]


CompileCallee = Callable[[Value, str, Residual], str]
Rule = Callable[[FrameState, Instruction, Residual, CompileCallee], Operation]
_RULES: dict[str, Rule] = {}


def operation_at(
    frame: FrameState, instruction: Instruction, out: Residual, compile_callee: CompileCallee
) -> Operation:
    """Take the operands off the frame's stack and return the operation; raises SkipFrame if there is no rule."""
    rule = _RULES.get(instruction.name)
    if rule is None:
        raise SkipFrame(CANNOT_RESUME, f"a break at {instruction.name}")
    return rule(frame, instruction, out, compile_callee)


def _operand(out: Residual, value: Value) -> str:
    """Return the name of an operand: Python warns of some operations on literals, which are not the program's text."""
    text = out.value(value)
    if text.isidentifier() and text not in ("None", "True", "False"):
        return text
    name = out.fresh()
    out.line(f"{name} = {text}")
    return name


def _expression(count: int, template: str, pushes: int = 1) -> Rule:
    """Make a rule from a template: `{0}`, `{1}` are operands from the deepest, `{name}` is the resolved argument."""

    def rule(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
        operands = [_operand(out, value) for value in frame.pop_many(count)]
        text = template.format(*operands, name=instruction.value)
        following = instruction.index + 1
        if not pushes:
            return Operation((text,), (Branch("", (), following),))
        name = out.fresh()
        return Operation((f"{name} = {text}",), (Branch("", (name,), following),))

    return rule


_RULES.update(
    {
        "BINARY_SUBSCR": _expression(2, "{0}[{1}]"),
        "STORE_SUBSCR": _expression(3, "{1}[{2}] = {0}", 0),
        "DELETE_SUBSCR": _expression(2, "del {0}[{1}]", 0),
        "STORE_ATTR": _expression(2, "{1}.{name} = {0}", 0),
        "DELETE_ATTR": _expression(1, "del {0}.{name}", 0),
        "UNARY_NEGATIVE": _expression(1, "-{0}"),
        "UNARY_POSITIVE": _expression(1, "+{0}"),
        "UNARY_INVERT": _expression(1, "~{0}"),
        "UNARY_NOT": _expression(1, "not {0}"),
        "TO_BOOL": _expression(1, "True if {0} else False"),
        "LIST_TO_TUPLE": _expression(1, "tuple({0})"),
        "BINARY_SLICE": _expression(3, "{0}[{1}:{2}]"),
        "STORE_SLICE": _expression(4, "{1}[{2}:{3}] = {0}", 0),
    }
)


def _iterator_over_memory(view: memoryview) -> object:
    """Return what the instruction gives; raises ValueError for a released view, which `iter` makes an iterator of.

    C leaves that error behind unraised, for whatever runs next.
    """
    return iter(view.__enter__())


def _get_iter(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
    value = frame.pop()
    operand, name = _operand(out, value), out.fresh()
    function = _iterator_over_memory if value.python_type() is memoryview else iter
    return Operation((f"{name} = {out.inject(function)}({operand})",), (Branch("", (name,), instruction.index + 1),))


_RULES["GET_ITER"] = _get_iter


def _load_attr(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
    owner = _operand(out, frame.pop())
    name = out.fresh()
    wants_null = instruction.name == "LOAD_METHOD" or (sys.version_info >= (3, 12) and instruction.argument & 1)
    if wants_null and sys.version_info < (3, 13):
        frame.stack.append(NULL)
        pushed: tuple[str, ...] = (name,)
    elif wants_null:
        pushed = (name, "")
    else:
        pushed = (name,)
    return Operation((f"{name} = {owner}.{instruction.value}",), (Branch("", pushed, instruction.index + 1),))


_RULES["LOAD_ATTR"] = _RULES["LOAD_METHOD"] = _load_attr


def _binary_op(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
    left, right = (_operand(out, value) for value in frame.pop_many(2))
    symbol = BINARY_SYMBOLS[instruction.argument % 13]
    name = out.fresh()
    if instruction.argument < 13:
        statements: tuple[str, ...] = (f"{name} = {left} {symbol} {right}",)
    else:
        statements = (f"{name} = {left}", f"{name} {symbol}= {right}")
    return Operation(statements, (Branch("", (name,), instruction.index + 1),))


_RULES["BINARY_OP"] = _binary_op


def _comparison(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
    left, right = (_operand(out, value) for value in frame.pop_many(2))
    if instruction.name == "IS_OP":
        symbol = "is not" if instruction.argument else "is"
    elif instruction.name == "CONTAINS_OP":
        symbol = "not in" if instruction.argument else "in"
    else:
        symbol = str(instruction.value).removeprefix("bool(").removesuffix(")")
    name = out.fresh()
    return Operation((f"{name} = {left} {symbol} {right}",), (Branch("", (name,), instruction.index + 1),))


_RULES["COMPARE_OP"] = _RULES["IS_OP"] = _RULES["CONTAINS_OP"] = _comparison


def _jump(when: bool) -> Rule:
    def rule(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
        operand = out.value(frame.pop())
        assert instruction.target is not None
        name = out.fresh()
        following, other = instruction.target, instruction.index + 1
        if not when:
            following, other = other, following
        return Operation(
            (f"{name} = True if {operand} else False",), (Branch(name, (), following), Branch("", (), other))
        )

    return rule


for _name in ("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_IF_TRUE"):
    _RULES[_name] = _jump(True)
for _name in ("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE", "POP_JUMP_IF_FALSE"):
    _RULES[_name] = _jump(False)


def _jump_or_pop(when: bool) -> Rule:
    def rule(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
        operand = out.value(frame.pop())
        assert instruction.target is not None
        name = out.fresh()
        keep = Branch(name if when else f"not {name}", (operand,), instruction.target)
        return Operation((f"{name} = True if {operand} else False",), (keep, Branch("", (), instruction.index + 1)))

    return rule


_RULES["JUMP_IF_TRUE_OR_POP"] = _jump_or_pop(True)
_RULES["JUMP_IF_FALSE_OR_POP"] = _jump_or_pop(False)


_CLEARING_A_LOOP = 0 if sys.version_info < (3, 12) else 1 if sys.version_info < (3, 13) else 2  # END_FOR, POP_TOP


def _for_iter(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
    iterator = out.value(frame.pop())
    assert instruction.target is not None
    name, end = out.fresh(), out.inject(END)
    after = instruction.target + _CLEARING_A_LOOP  # the iterator is not on the stack any more
    left = Branch(f"{name} is {end}", (), after)
    again = Branch("", (iterator, name), instruction.index + 1)
    return Operation((f"{name} = next({iterator}, {end})",), (left, again))


_RULES["FOR_ITER"] = _for_iter


def _unpack(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
    operand = out.value(frame.pop())
    if instruction.name == "UNPACK_SEQUENCE":
        names = [out.fresh() for _ in range(instruction.argument)]
        targets = list(names)
    else:
        before, after = instruction.argument & 255, instruction.argument >> 8
        names = [out.fresh() for _ in range(before + 1 + after)]
        targets = [f"*{name}" if position == before else name for position, name in enumerate(names)]
    statement = f"{', '.join(targets)}, = {operand}" if targets else f"[] = {operand}"
    return Operation((statement,), (Branch("", tuple(reversed(names)), instruction.index + 1),))


_RULES["UNPACK_SEQUENCE"] = _RULES["UNPACK_EX"] = _unpack


def _format(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
    specification = out.value(frame.pop()) if instruction.argument & 4 else "''"
    operand = out.value(frame.pop())
    conversion = {0: "{}", 1: "str({})", 2: "repr({})", 3: "ascii({})"}[instruction.argument & 3].format(operand)
    name = out.fresh()
    return Operation(
        (f"{name} = format({conversion}, {specification})",), (Branch("", (name,), instruction.index + 1),)
    )


_RULES["FORMAT_VALUE"] = _format
_RULES["FORMAT_SIMPLE"] = _expression(1, "format({0}, '')")
_RULES["FORMAT_WITH_SPEC"] = _expression(2, "format({0}, {1})")


def _convert(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
    operand, name = out.value(frame.pop()), out.fresh()
    function = {1: "str", 2: "repr", 3: "ascii"}[instruction.argument]
    return Operation((f"{name} = {function}({operand})",), (Branch("", (name,), instruction.index + 1),))


_RULES["CONVERT_VALUE"] = _convert


def _call(frame: FrameState, instruction: Instruction, out: Residual, compile_callee: CompileCallee) -> Operation:
    if instruction.name == "CALL_KW":
        names = frame.pop().constant()
        assert isinstance(names, tuple)
        frame.keyword_names = names
    callee, args, kwargs = split_call(frame, instruction.argument)
    callee = frame.ctx.realize(callee)
    parts = [out.value(arg) for arg in args]
    parts += [f"{name}={out.value(value)}" for name, value in kwargs.items()]
    if isinstance(callee, MethodOf | NativeMethod) and not callee.bound:
        function = f"{_operand(out, callee.owner)}.{callee.name}"  # as the program calls it: errors tell the difference
    else:
        function = compile_callee(callee, _operand(out, callee), out)
    name = out.fresh()
    return Operation((f"{name} = {function}({', '.join(parts)})",), (Branch("", (name,), instruction.index + 1),))


_RULES["CALL"] = _RULES["CALL_KW"] = _call


def _star_call(frame: FrameState, instruction: Instruction, out: Residual, compile_callee: CompileCallee) -> Operation:
    callee, args, kwargs = split_star_call(frame, instruction)
    callee = frame.ctx.realize(callee)
    parts = [f"*{out.value(args)}"]
    if kwargs is not None:
        parts.append(f"**{out.value(kwargs)}")
    function = compile_callee(callee, _operand(out, callee), out)
    name = out.fresh()
    return Operation((f"{name} = {function}({', '.join(parts)})",), (Branch("", (name,), instruction.index + 1),))


_RULES["CALL_FUNCTION_EX"] = _star_call


def _before_with(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
    manager = out.value(frame.pop())
    leave, entered = out.fresh(), out.fresh()
    statements = (
        f"{leave} = type({manager}).__exit__.__get__({manager}, type({manager}))",
        f"{entered} = type({manager}).__enter__({manager})",
    )
    return Operation(statements, (Branch("", (leave, entered), instruction.index + 1),))


_RULES["BEFORE_WITH"] = _before_with


def _in_place(method: str, taken: str = "{0}") -> Rule:
    """Make a rule for opcodes that update a container deeper in the stack; taken: what the method is given."""

    def rule(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
        operand = out.value(frame.pop())
        target = out.value(frame.stack[-instruction.argument])
        return Operation((f"{target}.{method}({taken.format(operand)})",), (Branch("", (), instruction.index + 1),))

    return rule


_RULES.update(
    {
        "LIST_EXTEND": _in_place("extend"),
        "SET_UPDATE": _in_place("update"),
        "DICT_UPDATE": _in_place("update", "{{**{0}}}"),  # takes only mappings, which `update` does not ask for
        "SET_ADD": _in_place("add"),
        "LIST_APPEND": _in_place("append"),
    }
)


def _import_name(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
    level, names = (out.value(value) for value in frame.pop_many(2))
    name = out.fresh()
    namespace = out.inject(frame.namespace)
    call = f"{out.inject(builtins)}.__import__({instruction.value!r}, {namespace}, None, {names}, {level})"
    return Operation((f"{name} = {call}",), (Branch("", (name,), instruction.index + 1),))


_RULES["IMPORT_NAME"] = _import_name


def _let_go(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
    """Drop a value, or bind or unbind a local: what it held goes away with the frame of the segment."""
    drops = instruction.name in ("POP_TOP", "POP_EXCEPT")
    name = "" if drops else frame.decoded.code.co_varnames[instruction.argument]
    if instruction.name == "DELETE_FAST":
        del frame.locals[name]
    elif name:
        frame.locals[name] = frame.pop()
    else:
        frame.pop()
    return Operation(("pass",), (Branch("", (), instruction.index + 1),))


_RULES["POP_TOP"] = _RULES["POP_EXCEPT"] = _RULES["STORE_FAST"] = _RULES["DELETE_FAST"] = _let_go


def _store_global(frame: FrameState, instruction: Instruction, out: Residual, _: CompileCallee) -> Operation:
    place = f"{out.inject(frame.namespace)}[{instruction.value!r}]"
    text = f"{place} = {out.value(frame.pop())}" if instruction.name == "STORE_GLOBAL" else f"del {place}"
    return Operation((text,), (Branch("", (), instruction.index + 1),))


_RULES["STORE_GLOBAL"] = _RULES["DELETE_GLOBAL"] = _store_global


def is_compilable_callee(value: Value) -> bool:
    """Return whether the callee is Python that can be a unit of its own."""
    if isinstance(value, BoundMethod):
        return is_compilable_callee(value.function)
    return isinstance(value, FunctionValue | ModuleValue)
