"""Stop a running function before an instruction and read its frame: stack with NULLs, locals, cells.

For tests of continuations: what capture works out symbolically is read here from CPython itself. The layout of a frame
in memory is the same in 3.11, 3.12 and 3.13 as far as it is used here.
"""

import ctypes
import dis
import sys
import types
from collections.abc import Callable
from typing import NamedTuple

from plumbline.compiler.bytecode.instruction import Decoded, decode
from plumbline.compiler.bytecode.resume_code import NULL, VALUE, ResumeLayout, slot_names

_FRAME_DATA = 24  # in a frame object: the pointer to the interpreter's own frame
_STACK_TOP = 64  # in that: how many slots and stack entries are in use (an int)
_SLOTS = 72  # and where the first one lies


class State(NamedTuple):
    """What a frame holds when the instruction at `index` is about to run; None on the stack stands for NULL."""

    decoded: Decoded
    index: int
    stack: list["tuple[object] | None"]
    slots: dict[str, object]


def read_state(frame: types.FrameType) -> State:
    """Return the state of a frame that is being traced."""
    decoded = decode(frame.f_code)
    address = ctypes.c_void_p.from_address(id(frame) + _FRAME_DATA).value
    assert address is not None
    names = slot_names(frame.f_code)
    index = next(i.index for i in decoded.instructions if i.offset == frame.f_lasti or _covers(decoded, i, frame))
    count = ctypes.c_int.from_address(address + _STACK_TOP).value
    if count < 0:  # 3.12 and 3.13 do not write it down for every kind of event
        count = len(names) + stack_depths(decoded)[index]
    words = (ctypes.c_void_p * count).from_address(address + _SLOTS)
    found = [None if word is None else (ctypes.cast(word, ctypes.py_object).value,) for word in words]
    slots = {name: entry[0] for name, entry in zip(names, found, strict=False) if entry is not None}
    return State(decoded, index, found[len(names) :], slots)


def stack_depths(decoded: Decoded) -> list[int]:
    """Return for each instruction how many entries the stack holds before it; -1 where nothing leads."""
    depths = [-1] * len(decoded.instructions)
    waiting = [(0, 0)]
    while waiting:
        index, depth = waiting.pop()
        if index == len(depths) or depths[index] >= 0:
            continue
        depths[index] = depth
        instruction = decoded.instructions[index]
        number = dis.opmap[instruction.name]
        argument = instruction.argument if number >= dis.HAVE_ARGUMENT else None
        if instruction.target is not None:
            waiting.append((instruction.target, depth + dis.stack_effect(number, argument, jump=True)))
        if instruction.name not in _ENDS:
            waiting.append((index + 1, depth + dis.stack_effect(number, argument, jump=False)))
        handler = decoded.handler_of[index]
        if handler is not None:
            waiting.append((handler.target, handler.depth + handler.keeps_position + 1))
    return depths


_ENDS = frozenset(
    """
    RETURN_VALUE RETURN_CONST RERAISE RAISE_VARARGS JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT
    """.split()
)


def _covers(decoded: Decoded, instruction: object, frame: types.FrameType) -> bool:
    """Return whether the frame stands at the instruction behind its EXTENDED_ARGs."""
    index: int = instruction.index  # type: ignore[attr-defined]  # an Instruction
    following = decoded.instructions[index + 1].offset if index + 1 < len(decoded.instructions) else 1 << 30
    return decoded.instructions[index].offset < frame.f_lasti < following


def continuation(state: State, names: set[str]) -> tuple[ResumeLayout, tuple[object, ...]]:
    """Return what a continuation from a state is given; names: the plain locals to hand over."""
    code = state.decoded.code
    in_cells = (set(code.co_cellvars) | set(code.co_freevars)) & set(state.slots)
    cells = tuple(name for name in slot_names(code) if name in in_cells)
    local = tuple(name for name in code.co_varnames if name in names and name in state.slots and name not in in_cells)
    stack = tuple(NULL if entry is None else VALUE for entry in state.stack)
    values = [entry[0] for entry in state.stack if entry is not None]
    values += [state.slots[name] for name in (*cells, *local)]
    return ResumeLayout(state.index, stack, cells, local), tuple(values)


Arguments = tuple[object, ...]


def stop_at(
    function: Callable[..., object], make: Callable[[], Arguments], nth: int, met: Callable[[State, Arguments], None]
) -> bool:
    """Run the function and call `met` before the nth instruction after its RESUME; return whether it got there.

    What the function does afterwards is thrown away: `met` may use up what the frame holds.
    """
    code = function.__code__  # type: ignore[attr-defined]  # a Python function
    args, seen = make(), [0]
    found: list[State] = []

    def trace(frame: types.FrameType, event: str, _: object) -> object:
        if frame.f_code is not code:
            return None
        if not frame.f_trace_opcodes:
            frame.f_trace_opcodes = True
            sys.settrace(trace)  # type: ignore[arg-type]  # 3.12 looks for opcodes to be traced only here
        if event == "opcode" and not found:
            if _is_started(frame):
                seen[0] += 1
            if seen[0] == nth:
                found.append(read_state(frame))
                sys.settrace(None)
                met(found[0], args)
        return trace

    if sys.version_info >= (3, 13):  # it reports no instructions of code that it has not met under this trace
        nth, then = 1 << 30, nth
        _run_traced(function, args, trace)
        args, nth, seen[0] = make(), then, 0
    _run_traced(function, args, trace)
    sys.settrace(None)
    return bool(found)


def _run_traced(function: Callable[..., object], args: Arguments, trace: object) -> None:
    sys.settrace(trace)  # type: ignore[arg-type]  # a trace function
    try:
        function(*args)
    except BaseException:  # the continuation has its result; this one's is not wanted
        return


def _is_started(frame: types.FrameType) -> bool:
    """Return whether the frame is past its RESUME, before which cells are not made yet."""
    start = next(i.offset for i in decode(frame.f_code).instructions if i.name == "RESUME")
    return frame.f_lasti > start
