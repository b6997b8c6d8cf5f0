"""Whether code after a break may walk the history between results of a graph.

A compiled graph has one step of history for all its results, so none of them is behind another one. Where the program
asks for gradients by a result of the graph, or hooks one, the graph has to run as it was captured. That is known when
it is too late: in the code after the break. So that is searched for the names by which a program asks.
"""

import types
from collections.abc import Iterable, Sequence

import torch
from torch import fx

from ...bytecode.instruction import decode
from ...values.torch.tensor import TensorValue
from ..context.frame import FrameState
from ..skip_rules import is_torch_file

_OF_TENSORS = frozenset({"retain_grad", "register_hook"})
_DEEPEST = 3  # calls below the frames that are searched


def may_walk(frames: Iterable[FrameState], results: Iterable[object]) -> bool:
    """Return whether the code of the frames may walk from one of a graph's results to another one."""
    tensors = [value for value in results if isinstance(value, TensorValue) and value.fake.requires_grad]
    return _one_behind_another(tensors) and any(
        _names_a_walk(frame.decoded.code, frame.namespace, _DEEPEST) for frame in frames
    )


def _one_behind_another(results: Sequence[TensorValue]) -> bool:
    """Return whether one of the results is computed from another one."""
    made = {value.node for value in results if value.node.op != "placeholder"}
    seen: set[fx.Node] = set()
    pending = [before for node in made for before in node.all_input_nodes]
    while pending:
        node = pending.pop()
        if node in made:
            return True
        if node not in seen:
            seen.add(node)
            pending += node.all_input_nodes
    return False


def _names_a_walk(code: types.CodeType, namespace: dict[str, object], depth: int) -> bool:
    """Return whether code, or a function of the program that it names, names what asks for gradients by a tensor."""
    globals_ = [one.value for one in decode(code).instructions if one.name == "LOAD_GLOBAL"]
    found = [namespace[name] for name in dict.fromkeys(globals_) if isinstance(name, str) and name in namespace]
    of_autograd = "autograd" in code.co_names or any(one is torch.autograd for one in found)
    keywords = {name for one in code.co_consts if isinstance(one, tuple) for name in one if isinstance(name, str)}
    asks = (
        bool(_OF_TENSORS & {*code.co_names}),
        of_autograd and "grad" in code.co_names,
        any(one is torch.autograd.grad for one in found),
        "backward" in code.co_names and "inputs" in keywords,
    )
    if any(asks):
        return True
    inside = [(one, namespace) for one in code.co_consts if isinstance(one, types.CodeType)]
    functions = [one for one in found if isinstance(one, types.FunctionType)]
    inside += [(one.__code__, one.__globals__) for one in functions if not is_torch_file(one.__code__.co_filename)]
    return depth > 0 and any(_names_a_walk(*one, depth - 1) for one in inside)
