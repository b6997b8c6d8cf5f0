"""Which local variables are still read after an instruction: backward data flow over the decoded code."""

from weakref import WeakKeyDictionary

from .instruction import Decoded, Instruction

_READS = frozenset({"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_CLOSURE", "LOAD_FAST_AND_CLEAR", "DELETE_FAST"})
_LEAVES = frozenset({"RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS"})
_ALWAYS_JUMPS = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP"})
_LIVE: WeakKeyDictionary[object, tuple[frozenset[str], ...]] = WeakKeyDictionary()


def live_locals(decoded: Decoded) -> tuple[frozenset[str], ...]:
    """Return for each instruction the names of the locals that may be read when it is about to run.

    DELETE_FAST counts as a read: it raises for an unbound name.
    """
    found = _LIVE.get(decoded.code)
    if found is None:
        found = _flow(decoded)
        _LIVE[decoded.code] = found
    return found


def _flow(decoded: Decoded) -> tuple[frozenset[str], ...]:
    instructions = decoded.instructions
    live: list[frozenset[str]] = [frozenset()] * len(instructions)
    changed = True
    while changed:
        changed = False
        for instruction in reversed(instructions):
            after: frozenset[str] = frozenset().union(*(live[i] for i in _successors(decoded, instruction)))
            reads, writes = _reads_and_writes(instruction)
            before = (after - writes) | reads
            handler = decoded.handler_of[instruction.index]
            if handler is not None:
                before |= live[handler.target]  # the write may not happen: nothing is killed on this edge
            if before != live[instruction.index]:
                live[instruction.index] = before
                changed = True
    return tuple(live)


def _successors(decoded: Decoded, instruction: Instruction) -> list[int]:
    following = []
    if instruction.name not in _LEAVES and instruction.name not in _ALWAYS_JUMPS:
        following.append(instruction.index + 1)
    if instruction.target is not None:
        following.append(instruction.target)
    return [index for index in following if index < len(decoded.instructions)]


def _reads_and_writes(instruction: Instruction) -> tuple[frozenset[str], frozenset[str]]:
    name, value = instruction.name, instruction.value
    if name == "LOAD_FAST_LOAD_FAST" and isinstance(value, tuple):
        return frozenset(value), frozenset()
    if name == "STORE_FAST_LOAD_FAST" and isinstance(value, tuple):
        return frozenset(value[1:]) - frozenset(value[:1]), frozenset(value[:1])
    if name == "STORE_FAST_STORE_FAST" and isinstance(value, tuple):
        return frozenset(), frozenset(value)
    if name in _READS and isinstance(value, str):
        return frozenset((value,)), frozenset()
    if name == "STORE_FAST" and isinstance(value, str):
        return frozenset(), frozenset((value,))
    return frozenset(), frozenset()
