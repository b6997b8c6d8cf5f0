"""Modules of `torch.nn`: built from torch's own samples, in training and evaluation, with their buffers compared."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from .argument_trees import tensors_of, with_tensors
from .case_trial import Runnable
from .cases import MODULE, SweepCase, SweepTask, dtype_of, seed_of
from .prepared_cases import copy_of
from .torch_samples import MODULES

MOST_INPUTS = 4
"""Samples of a class and mode: torch lists dozens for some, which differ in one option."""


@dataclass(frozen=True, slots=True, eq=False)
class ModuleCase:
    """One call of one module; `fresh` returns the module and its arguments."""

    case: SweepCase
    fresh: Callable[[], tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]]


def module_cases(task: SweepTask) -> list[ModuleCase]:
    """Return the cases of a class of modules; options that cannot be built for the dtype are left out."""
    info = MODULES[task.operator.removeprefix(MODULE)]
    cases = []
    for mode in ("train", "eval"):
        torch.manual_seed(seed_of(task.operator, task.dtype, mode) % 2**31)
        inputs = info.module_inputs_func(
            info, device="cpu", dtype=dtype_of(task.dtype), requires_grad=True, training=mode == "train"
        )
        for number, one in enumerate(list(inputs)[:MOST_INPUTS]):
            fresh = _builder(info, task, mode, one)
            if fresh is not None:
                cases.append(ModuleCase(SweepCase(task, number, mode), fresh))
    return cases


def _builder(info: Any, task: SweepTask, mode: str, one: Any) -> Any:
    if one.forward_input is None:
        return None
    dtype = dtype_of(task.dtype)
    try:
        module = info.module_cls(*one.constructor_input.args, **one.constructor_input.kwargs).to(dtype)
    except Exception:  # torch's own: an option that this class does not have on the CPU
        return None
    module.train(mode == "train")
    args, kwargs = one.forward_input.args, one.forward_input.kwargs
    if any(tensor.layout != torch.strided for tensor in tensors_of((args, kwargs))):
        return None

    if any(
        isinstance(one, UninitializedParameter | UninitializedBuffer)
        for one in (*module.parameters(), *module.buffers())
    ):
        try:
            module(*with_tensors(args, copy_of), **with_tensors(kwargs, copy_of))  # the judge cannot undo this
        except Exception:  # torch's own: no kernel for this dtype
            return None

    def fresh() -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
        return copy.deepcopy(module), with_tensors(args, copy_of), with_tensors(kwargs, copy_of)

    return fresh


def module_program(cases: Sequence[ModuleCase]) -> Runnable:
    """Return calls of modules as one program; its arguments are the modules with their own arguments."""

    def program(args: list[tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]]) -> Any:
        return tuple([module(*given, **named) for module, given, named in args])

    return Runnable(tuple(one.case.key for one in cases), program, lambda: [one.fresh() for one in cases])
