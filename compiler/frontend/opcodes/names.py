"""Rules of the opcodes that work by name: the bodies of classes, whose names are a dictionary."""

from ...bytecode.instruction import Instruction
from ...values.constant import Constant
from ...values.python.containers.mappings import DictValue
from ...values.value import Raised
from ..context.frame import FrameState
from .opcode_table import opcode


def _name(instruction: Instruction) -> str:
    assert isinstance(instruction.value, str)
    return instruction.value


@opcode("STORE_NAME")
def do_STORE_NAME(frame: FrameState, instruction: Instruction) -> None:
    """Bind a name of the class."""
    frame.locals[_name(instruction)] = frame.pop()


@opcode("DELETE_NAME")
def do_DELETE_NAME(frame: FrameState, instruction: Instruction) -> None:
    """Unbind a name of the class."""
    if frame.locals.pop(_name(instruction), None) is None:
        frame.ctx.throw(NameError, f"name '{_name(instruction)}' is not defined", name=_name(instruction))


@opcode("LOAD_NAME")
def do_LOAD_NAME(frame: FrameState, instruction: Instruction) -> None:
    """Push a name of the class, a global or a builtin."""
    value = frame.locals.get(_name(instruction))
    frame.push(value if value is not None else frame.ctx.effects.global_value(frame.namespace, _name(instruction)))


@opcode("LOAD_CLASSDEREF", last=(3, 11))
def do_LOAD_CLASSDEREF(frame: FrameState, instruction: Instruction) -> None:
    """Push a name of the class, or the content of a cell."""
    name = _name(instruction)
    value = frame.locals.get(name)
    frame.push(value if value is not None else frame.cells[name].load(frame.ctx, name))


@opcode("LOAD_LOCALS", (3, 12))
def do_LOAD_LOCALS(frame: FrameState, instruction: Instruction) -> None:
    """Push the names of the class."""
    pairs = [(Constant(name), value) for name, value in frame.locals.items()]
    frame.push(DictValue.of(frame.ctx, list(pairs)))


@opcode("LOAD_FROM_DICT_OR_GLOBALS", (3, 12))
@opcode("LOAD_FROM_DICT_OR_DEREF", (3, 12))
def do_LOAD_FROM_DICT(frame: FrameState, instruction: Instruction) -> None:
    """Push a name of a mapping, else a global or the content of a cell."""
    mapping, name = frame.pop(), _name(instruction)
    try:
        frame.push(mapping.get_item(frame.ctx, Constant(name)))
    except Raised as raised:
        if not issubclass(raised.value.python_type(), KeyError):
            raise
        if instruction.name == "LOAD_FROM_DICT_OR_DEREF":
            frame.push(frame.cells[name].load(frame.ctx, name))
        else:
            frame.push(frame.ctx.effects.global_value(frame.namespace, name))


@opcode("SETUP_ANNOTATIONS")
def do_SETUP_ANNOTATIONS(frame: FrameState, instruction: Instruction) -> None:
    """Make the dictionary of annotations."""
    frame.locals.setdefault("__annotations__", DictValue())
