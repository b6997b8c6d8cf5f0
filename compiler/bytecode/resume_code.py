"""Continue a function in the middle, in plain CPython: a prologue in front of the unchanged code.

The prologue takes one tuple, puts its parts on the stack and into the slots of the locals and cells, and jumps to
the instruction where the original left off. Jumps are relative since 3.11, so the original bytes stay as they are;
only the exception table moves. Because the rows of that table still cover the target, `try` and `with` blocks
entered before the break work in the continuation.
"""

import dis
import inspect
import sys
import types
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType

from .instruction import Decoded, encode_exception_table, exception_table

NULL = "null"  # stack kinds
VALUE = "value"
HANDLED = "handled"  # the exception state below a handler; the value is the exception that is handled

_SLOT_OPCODES = frozenset(
    """
    LOAD_FAST STORE_FAST DELETE_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR MAKE_CELL LOAD_CLOSURE LOAD_DEREF STORE_DEREF
    DELETE_DEREF LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF
    """.split()
)


@dataclass(frozen=True, slots=True)
class ResumeLayout:
    """What a continuation is given: stack from the bottom (`NULL` entries carry no value), then names of slots.

    cells: closure variables, passed as cell objects.  locals: plain locals, passed as values.
    The tuple holds the values of the non-NULL stack entries, then the cells, then the locals.
    """

    index: int
    stack: tuple[str, ...]
    cells: tuple[str, ...]
    locals: tuple[str, ...]


def slot_names(code: CodeType) -> tuple[str, ...]:
    """Return the names of the fast slots in order: locals, then cells that are not locals, then free variables."""
    extra = tuple(name for name in code.co_cellvars if name not in code.co_varnames)
    return code.co_varnames + extra + code.co_freevars


def make_resume_function(
    decoded: Decoded, layout: ResumeLayout, function_globals: dict[str, object], *, handed: bool = False
) -> types.FunctionType:
    """Return a function of one tuple (see ResumeLayout) that runs the original code from `layout.index` on.

    handed: the tuple is in a list, and is taken out of it: whoever calls the function then holds no value.

    Of a generator, which stands behind a yield: the function returns one that takes a first `next` to get there.
    Raises ValueError if the code has no plain local and too many closure variables to be renumbered.
    """
    code = decoded.code
    suspends = bool(code.co_flags & inspect.CO_GENERATOR)
    body, shift = bytearray(code.co_code), 0
    names = code.co_varnames
    if not names:  # the tuple needs a first slot: every slot number moves up by one
        names, shift = (".resume",), 1
        _renumber(decoded, body)
    slots = {name: index + shift for index, name in enumerate(slot_names(code))}
    prologue, constants = _prologue(layout, slots, code.co_consts, suspends=suspends, handed=handed)
    table = []
    target = decoded.instructions[layout.index + suspends].offset  # behind the RESUME that follows a yield
    jump = _jump(target)
    if suspends:
        table = _stand_behind_yield(prologue, decoded, layout.index, len(constants) - 1, jump)
    prologue += jump
    move = len(prologue)
    table = [(s, e, t + move, d, k) for s, e, t, d, k in table]
    table += [(s + move, e + move, t + move, d, k) for s, e, t, d, k in exception_table(code.co_exceptiontable)]
    new = code.replace(
        co_code=bytes(prologue) + bytes(body),
        co_consts=constants,
        co_varnames=names,
        co_nlocals=len(names),
        co_argcount=1,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~(0x04 | 0x08),
        co_stacksize=code.co_stacksize + len(layout.stack) + len(layout.cells) + len(layout.locals) + 3,
        co_exceptiontable=encode_exception_table(table),
        co_linetable=_location_rows(move // 2, code) + code.co_linetable,
        co_name=f"{code.co_name}",
    )
    closure = tuple(types.CellType() for _ in code.co_freevars)  # replaced by the prologue
    return types.FunctionType(new, function_globals, code.co_name, None, closure)


def _prologue(
    layout: ResumeLayout, slots: dict[str, int], constants: tuple[object, ...], *, suspends: bool, handed: bool
) -> tuple[bytearray, tuple[object, ...]]:
    out, extended = bytearray(), list(constants)
    if suspends:
        _emit(out, "RETURN_GENERATOR", 0)
        _emit(out, "POP_TOP", 0)
    _emit(out, "RESUME", 0)
    if handed:
        for name in ("BINARY_SUBSCR", "DELETE_SUBSCR"):
            _emit(out, "LOAD_FAST", 0)
            _emit(out, "LOAD_CONST", len(extended))
            _emit(out, name, 0)
        extended.append(0)
        _emit(out, "STORE_FAST", 0)
    position = 0
    for kind in layout.stack:
        if kind == NULL:
            _emit(out, "PUSH_NULL", 0)
            continue
        _emit(out, "LOAD_FAST", 0)
        _emit(out, "LOAD_CONST", len(extended))
        _emit(out, "BINARY_SUBSCR", 0)
        extended.append(position)
        position += 1
        if kind == HANDLED:  # pushes the state it replaces, which POP_EXCEPT restores, and the exception
            _emit(out, "PUSH_EXC_INFO", 0)
            _emit(out, "POP_TOP", 0)
    stored = layout.cells + layout.locals
    if stored:
        _emit(out, "LOAD_FAST", 0)
        _emit(out, "LOAD_CONST", len(extended))
        _emit(out, "BINARY_SUBSCR", 0)
        extended.append(slice(position, None))
        _emit(out, "UNPACK_SEQUENCE", len(stored))
        for name in stored:
            _emit(out, "STORE_FAST", slots[name])
    if 0 not in {slots[name] for name in stored}:
        _emit(out, "DELETE_FAST", 0)
    return out, (*extended, None)


def _stand_behind_yield(
    prologue: bytearray, decoded: Decoded, index: int, none: int, jump: bytearray
) -> list[tuple[int, int, int, int, bool]]:
    """Add a yield of None that an exception can be thrown into as into the one before `index`; return its row.

    jump: what follows.
    """
    _emit(prologue, "LOAD_CONST", none)
    yielded, resume = decoded.instructions[index - 1], decoded.instructions[index]
    finds_send = sys.version_info < (3, 12) and resume.argument & 3 != 1
    if finds_send:  # throwing into a `yield from` goes on where the SEND before the yield says, if its iterator ends
        _emit(prologue, "JUMP_FORWARD", 1)
        _emit(prologue, "SEND", 3)
    start = len(prologue)
    _emit(prologue, "YIELD_VALUE", yielded.argument)
    _emit(prologue, "RESUME", resume.argument)
    end = len(prologue)
    if finds_send:
        send = decoded.instructions[index - 2]
        assert send.target is not None  # every SEND has one
        ended = _jump(decoded.instructions[send.target].offset, len(jump))
        _emit(prologue, "JUMP_FORWARD", len(ended) // 2)
        end = len(prologue)  # what its iterator raises is raised in front of where the SEND says
        prologue += ended
    handler = decoded.handler_of[yielded.index]
    if handler is None:
        return []
    entry = decoded.instructions[handler.target].offset
    return [(start, end, entry, handler.depth, handler.keeps_position)]


def _jump(target: int, between: int = 0) -> bytearray:
    """Return a jump to an offset of the body, with so many bytes between that and the jump."""
    out = bytearray()
    _emit(out, "JUMP_FORWARD", (target + between) // 2)
    return out


def _emit(out: bytearray, name: str, argument: int) -> None:
    for shift in (24, 16, 8):
        if argument >> shift:
            out += bytes((dis.opmap["EXTENDED_ARG"], (argument >> shift) & 255))
    out += bytes((dis.opmap[name], argument & 255))
    out += bytes((dis.opmap["CACHE"], 0)) * _cache_entries(name)


def _cache_entries(name: str) -> int:
    """Return how many CACHE units follow the opcode; measured by compiling, so that no private table is read."""
    return _CACHES.get(name, 0)


def _measure_caches() -> dict[str, int]:
    code = compile("a[b]\nc, d = e", "<measure>", "exec")
    shown = list(dis.get_instructions(code))
    return {item.opname: (after.offset - item.offset) // 2 - 1 for item, after in pairwise(shown)}


_CACHES = _measure_caches()


def _renumber(decoded: Decoded, body: bytearray) -> None:
    for instruction in decoded.instructions:
        if instruction.name in _SLOT_OPCODES:
            if instruction.argument >= 255:
                raise ValueError(f"{decoded.code.co_name} has too many closure variables to continue in the middle")
            body[instruction.offset + 1] = instruction.argument + 1


def _location_rows(units: int, code: CodeType) -> bytes:
    """Return line-table rows that give the prologue no position (code 15), eight units at a time at most.

    Layout: CPython, Objects/locations.md.
    """
    del code
    out = bytearray()
    while units > 0:
        length = min(units, 8)
        out.append(128 | (15 << 3) | (length - 1))
        units -= length
    return bytes(out)
