"""Branches that only lead to an error: the other side is assumed, and the assumption checked when the graph has run.

`assert (x > 0).all()`, `if not valid.all(): raise ValueError(...)` and their like depend on data, and so would end the
graph.  But nothing visible has happened when the graph has run: if the assumption turns out wrong then, the code runs
again from its start, uncompiled, and raises its own error at its own place.  That needs a graph that writes to no
input; random generators are put back.  That NumPy would not warn is assumed of graphs that write, too: what they write
is saved before.
"""

from torch import fx

from ...bytecode.instruction import Instruction
from ...bytecode.raising import jump_that_does_not_raise
from ...values.reasons import Signal
from ...values.torch.tensor import TensorValue
from .frame import FrameState

MOST = 64  # assumptions of one capture; more are a loop whose end is an error


class AssumedInVain(Signal):
    """The graph cannot be run without a trace, so capture starts again and assumes nothing."""


def branch(frame: FrameState, instruction: Instruction, jumps_if: bool) -> bool:
    """Take the top of the stack and return its truth value, or that of the side that raises no error."""
    value = frame.pop()
    if isinstance(value, TensorValue):
        jumps = jump_that_does_not_raise(frame.decoded, instruction)
        if jumps is not None and frame.ctx.graph.assume(value, jumps_if is jumps):
            return jumps_if is jumps
    return value.truth(frame.ctx)


def leaves_no_trace(graph: fx.Graph, mutates_inputs: bool, changed_states: set[str], in_blocks: bool) -> bool:
    """Return whether the code can run again after the graph has run; the grad mode is put back by the caller."""
    hooks = any(node.op == "call_method" and node.target in _HOOKS for node in graph.nodes)
    return not (mutates_inputs or in_blocks or hooks or changed_states - {"grad"})


_HOOKS = ("register_hook", "register_post_accumulate_grad_hook", "backward", "retain_grad")
