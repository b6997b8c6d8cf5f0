"""Which local variables are still read after an instruction: backward data flow over the decoded code."""

from weakref import WeakKeyDictionary

from .instruction import Decoded, Instruction

_READS = frozenset(
    {"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_CLOSURE", "LOAD_FAST_AND_CLEAR", "DELETE_FAST", "LOAD_FAST_LOAD_FAST"}
)
_WRITES = frozenset({"STORE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST"})
_LEAVES = frozenset({"RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS"})
_ALWAYS_JUMPS = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP"})
_LIVE: WeakKeyDictionary[object, tuple[frozenset[str], ...]] = WeakKeyDictionary()


def live_locals(decoded: Decoded) -> tuple[frozenset[str], ...]:
    """Return for each instruction the names of the locals that may be read when it is about to run.

    DELETE_FAST counts as a read: it raises for an unbound name.
    """
    live = _LIVE.get(decoded.code)
    if live is None:
        live = _flow(decoded)
        _LIVE[decoded.code] = live
    return live


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
    """Return which locals an instruction reads before it writes them, and which it writes."""
    name, value = instruction.name, instruction.value
    if name not in _READS and name not in _WRITES:
        return frozenset(), frozenset()
    places = value if isinstance(value, tuple) else (value,)
    if name == "STORE_FAST_LOAD_FAST":
        return frozenset(places[1:]) - frozenset(places[:1]), frozenset(places[:1])
    names: frozenset[str] = frozenset(places)
    return (names, frozenset()) if name in _READS else (frozenset(), names)
