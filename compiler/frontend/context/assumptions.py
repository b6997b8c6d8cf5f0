"""Branches that only lead to an error: the other side is assumed, and the assumption checked when the graph has run.

`assert (x > 0).all()`, `if not valid.all(): raise ValueError(...)` and their like depend on data, and so would end the
graph.  But nothing visible has happened when the graph has run: if the assumption turns out wrong then, the code runs
again from its start, uncompiled, and raises its own error at its own place.  That needs a graph that writes to no
input; random generators are put back.  That NumPy would not warn is assumed of graphs that write, too: what they write
is saved before.
"""

from torch import fx

from ...bytecode.instruction import Decoded, Instruction
from ...values.reasons import Signal
from ...values.torch.tensor import TensorValue
from .frame import FrameState

MOST = 64  # assumptions of one capture; more are a loop whose end is an error
_LONGEST = 200  # instructions of a message under construction


class AssumedInVain(Signal):
    """The graph cannot be run without a trace, so capture starts again and assumes nothing."""


def branch(frame: FrameState, instruction: Instruction, jumps_if: bool) -> bool:
    """Take the top of the stack and return its truth value, or that of the side that raises no error."""
    value = frame.pop()
    if isinstance(value, TensorValue):
        assert instruction.target is not None
        raises = [_only_raises(frame.decoded, index) for index in (instruction.target, instruction.index + 1)]
        if raises.count(True) == 1 and frame.ctx.graph.assume(value, jumps_if is raises[1]):
            return jumps_if is raises[1]
    return value.truth(frame.ctx)


def _only_raises(decoded: Decoded, index: int) -> bool:
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


_ENDS = frozenset({"RETURN_VALUE", "RETURN_CONST", "RERAISE", "YIELD_VALUE", "RETURN_GENERATOR", "SEND"})


def leaves_no_trace(graph: fx.Graph, mutates_inputs: bool, changed_states: set[str], in_blocks: bool) -> bool:
    """Return whether the code can run again after the graph has run; the grad mode is put back by the caller."""
    hooks = any(node.op == "call_method" and node.target in _HOOKS for node in graph.nodes)
    return not (mutates_inputs or in_blocks or hooks or changed_states - {"grad"})


_HOOKS = ("register_hook", "register_post_accumulate_grad_hook", "backward", "retain_grad")
