"""What the code after a break may ask for that compiled code would not have: it is searched for the names to ask by.

- A compiled graph has one step of history for all its results, so none of them is behind another one, and a result is
  written once. Where the program asks for gradients by a result of the graph, hooks one, or takes its `grad_fn` or its
  version, the graph has to run as captured.
- What goes on after a break is given the variables that its code reads. A function that it calls may look at them all.

Either is known for certain when it is too late: in the code after the break.
"""

import enum
import types
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import fx

from ...base.real_objects.past_methods import is_really
from ...bytecode.instruction import decode
from ...values.python.objects.functions import FunctionValue
from ...values.torch.tensor import TensorValue
from ...values.value import Value
from ..context.frame import FrameState
from ..context.lazy import LazyValue
from ..skip_rules import is_torch_file

_DEEPEST = 3  # calls below the frames that are searched
_Code = tuple[types.CodeType, dict[str, object]]  # and the namespace that it is run in


class Later(enum.Flag):
    """What code may ask for.

    Gradients by a tensor, the steps of its history, how often it has been written to; variables of the callers.
    """

    NOTHING = 0
    WALK = enum.auto()
    STEPS = enum.auto()
    VERSIONS = enum.auto()
    LOCALS = enum.auto()


_BY_NAME = {
    "retain_grad": Later.WALK,
    "register_hook": Later.WALK,
    "grad_fn": Later.STEPS,
    "get_gradient_edge": Later.STEPS,
    "_version": Later.VERSIONS,
    "f_locals": Later.LOCALS,
}


def asked_later(frames: Iterable[FrameState]) -> Later:
    """Return what the code of the frames, and functions of the program that it names, may ask for."""
    asked, seen = Later.NOTHING, set[types.CodeType]()
    level = [code for frame in frames for code in _of_frame(frame)]
    for _ in range(_DEEPEST + 1):
        level = [one for one in level if one[0] not in seen]
        seen |= {code for code, _ in level}
        for one in level:
            asked |= _asked_by(*one)
        level = [inner for one in level for inner in _named_in(*one)]
    return asked


def sees_steps(asked: Later, results: Iterable[object]) -> bool:
    """Return whether code that asks for this may see by a graph's results whether it has run step by step."""
    made = [value for value in results if isinstance(value, TensorValue) and value.node.op != "placeholder"]
    with_history = [value for value in made if value.fake.requires_grad]
    return (
        (Later.STEPS in asked and bool(with_history))
        or (Later.VERSIONS in asked and any(not one.fake.is_inference() and one.fake._version for one in made))
        or (Later.WALK in asked and _one_behind_another(with_history))
    )


def _one_behind_another(results: Sequence[TensorValue]) -> bool:
    """Return whether one of the results is computed from another one."""
    made = {value.node for value in results}
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


def _of_frame(frame: FrameState) -> Iterator[_Code]:
    """Give the code of a frame, and of the functions that its closure and its variables hold."""
    yield frame.decoded.code, frame.namespace
    contents = [cell.content for cell in frame.cells.values()]
    for value in (*contents, *frame.locals.values()):
        function = _function_of(value)
        if function is not None:
            yield function


def _function_of(value: Value | None) -> _Code | None:
    known = value.inner or value if isinstance(value, LazyValue) else value
    if isinstance(known, FunctionValue):
        return None if is_torch_file(known.code.co_filename) else (known.code, known.namespace)
    return _of_real(known.raw) if isinstance(known, LazyValue) else None


def _of_real(real: object) -> _Code | None:
    if not is_really(real, types.FunctionType) or is_torch_file(real.__code__.co_filename):
        return None
    return real.__code__, real.__globals__


def _globals_of(code: types.CodeType) -> set[str]:
    """Return the names of the globals that code reads: attributes may have the same names."""
    return {str(one.value) for one in decode(code).instructions if one.name == "LOAD_GLOBAL"}


def _asked_by(code: types.CodeType, namespace: dict[str, object]) -> Later:
    """Return what code asks for itself: by attribute, by a function of autograd, or by `backward(inputs=...)`."""
    asked, names = Later.NOTHING, {*code.co_names}
    for name in names & _BY_NAME.keys():
        asked |= _BY_NAME[name]
    found = [namespace[name] for name in _globals_of(code) if name in namespace]
    of_autograd = "autograd" in names or any(one is torch.autograd for one in found)
    keywords = {name for one in code.co_consts if isinstance(one, tuple) for name in one if isinstance(name, str)}
    walks = (
        of_autograd and "grad" in names,
        any(one is torch.autograd.grad for one in found),
        "backward" in names and "inputs" in keywords,
    )
    return asked | Later.WALK if any(walks) else asked


def _named_in(code: types.CodeType, namespace: dict[str, object]) -> Iterator[_Code]:
    """Give the code that a code makes functions of, and that of the functions it names."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant, namespace
    for name in _globals_of(code):
        function = _of_real(namespace.get(name))
        if function is not None:
            yield function
