"""Code that only leads to an error, and what a truth value has to be for the code that waits for it to avoid one."""

from __future__ import annotations

from collections.abc import Iterable

from .instruction import Decoded, Instruction

_LONGEST = 200  # instructions of a message under construction
_ENDS = frozenset({"RETURN_VALUE", "RETURN_CONST", "RERAISE", "YIELD_VALUE", "RETURN_GENERATOR", "SEND"})
_KEEPS_TRUTH = frozenset({"TO_BOOL", "NOP"})


def only_raises(decoded: Decoded, index: int) -> bool:
    """Return whether the code from there on ends in a raise, without a branch."""
    for _ in range(_LONGEST):
        instruction = decoded.instructions[index]
        if instruction.name == "RAISE_VARARGS":
            return True
        forward = instruction.name == "JUMP_FORWARD"
        if instruction.name in _ENDS or (instruction.target is not None and not forward):
            return False
        assert instruction.target is not None or not forward
        index = instruction.target if forward and instruction.target is not None else index + 1
        if index >= len(decoded.instructions):
            return False
    return False


def jump_that_does_not_raise(decoded: Decoded, branch: Instruction) -> bool | None:
    """Return whether a branch jumps, if exactly one of its sides only leads to an error."""
    assert branch.target is not None
    raises = [only_raises(decoded, index) for index in (branch.target, branch.index + 1)]
    return raises[1] if raises.count(True) == 1 else None


def awaited_truth(waiting: Iterable[tuple[Decoded, int]]) -> bool | None:
    """Return what a truth value has to be so that the code that gets it raises no error; None if either may do.

    waiting: frames and the next instruction of each, the innermost first: one that returns the value as it is, or its
    opposite, passes it to the next.  What else a caller may do with what it gets is not asked.
    """
    wanted = True
    for decoded, index in waiting:
        while (instruction := decoded.instructions[index]).name in _KEEPS_TRUTH or instruction.name == "UNARY_NOT":
            wanted ^= instruction.name == "UNARY_NOT"
            index += 1
        if instruction.name != "RETURN_VALUE":
            break
    else:
        return None
    if not (instruction.name.startswith("POP_JUMP_") and instruction.name.endswith(("_IF_TRUE", "_IF_FALSE"))):
        return None
    jumps = jump_that_does_not_raise(decoded, instruction)
    return None if jumps is None else wanted is (jumps is instruction.name.endswith("_IF_TRUE"))
