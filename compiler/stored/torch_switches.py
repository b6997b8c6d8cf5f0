"""Torch's switches as one tuple of texts: what is compiled under one setting must not be found under another.

The third importer of private torch names.  Switches are found by how their readers are named, so that one of a later
torch takes part without being known here.
"""

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch.library import _impls as registered_kernels  # what Python code has registered, such as "aten/add.Tensor/CPU"

from ..base.torch_facts import default_device_or_none

_WORDS = ("enabled", "allow", "deterministic", "precision", "priority", "uninitialized", "qengine")
_NOT_FOR_NOTHING = frozenset({"_get_fp32_precision_getter"})  # takes arguments
_ITS_OWN = (  # libraries of torch's, by module and name
    ("torch._functorch.predispatch", "VMAP_DECOMPOSITIONS_LIB"),  # with the first `vmap` of a process
    ("torch._subclasses.fake_impls", "_to_dense_functorch_lib"),  # of torch 2.15: for fake tensors
    ("torch._subclasses.fake_impls", "_to_dense_python_tls_lib"),
)

_PUBLIC: tuple[Callable[[], Any], ...] = (
    torch.get_default_dtype,
    default_device_or_none,
    torch.is_anomaly_enabled,
    torch.is_anomaly_check_nan_enabled,
    torch.is_autocast_cache_enabled,
    torch.get_num_threads,
    torch.backends.mha.get_fastpath_enabled,
    torch.backends.mkldnn.is_available,
    lambda: (torch.backends.opt_einsum.enabled, torch.backends.opt_einsum.strategy),
    torch.__future__.get_overwrite_module_params_on_conversion,
    torch.__future__.get_swap_module_params_on_conversion,
)


def torch_switches() -> tuple[str, ...]:
    """Return what every switch of torch's that may change a trace or a kernel is set to, as texts."""
    return (*(str(read()) for read in _PUBLIC), *(f"{name} {read()}" for name, read in _private_readers()))


@cache
def _private_readers() -> tuple[tuple[str, Callable[[], object]], ...]:
    names = (name for name in dir(torch._C) if name.startswith("_get_") and any(word in name for word in _WORDS))
    return tuple((name, getattr(torch._C, name)) for name in sorted(names) if name not in _NOT_FOR_NOTHING)


def registered_aten_kernels() -> tuple[str, ...]:
    """Return the kernels and shape rules of ATen operators that Python code has registered, as "aten/name/key".

    Without those that torch registers by itself in some processes and not in others: they change no answer.
    """
    by_torch = {
        key
        for module, name in _ITS_OWN
        if isinstance(library := getattr(sys.modules.get(module), name, None), torch.library.Library)
        for key in library._op_impls
    }
    return tuple(sorted(key for key in registered_kernels if key.startswith("aten/") and key not in by_torch))


def sees_calls() -> bool:
    """Return whether a mode of the program, or of a test around it, sees the calls of operators or of functions."""
    return bool(torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack())


def torch_build() -> tuple[str, ...]:
    """Return what names this build of torch, and the vector abilities that it uses on this machine."""
    return torch.__version__, str(torch.version.git_version), torch.backends.cpu.get_cpu_capability()


def forward_ad_depth() -> int:
    """Return how many levels of forward-mode AD are entered."""
    return int(torch.autograd.forward_ad._current_level) + 1


def leave_forward_ad(depth: int) -> None:
    """Leave, or enter, levels of forward-mode AD until this many are entered."""
    while forward_ad_depth() > depth:
        torch.autograd.forward_ad.exit_dual_level()  # type: ignore[no-untyped-call]  # torch leaves it untyped
    while forward_ad_depth() < depth:
        torch.autograd.forward_ad.enter_dual_level()  # type: ignore[no-untyped-call]  # torch leaves it untyped


def set_backward_threads(enabled: bool) -> None:
    """Set whether backwards may use threads of their own."""
    torch._C._set_multithreading_enabled(enabled)
