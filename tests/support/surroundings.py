"""What a capture could leave behind: a picture of the process, of torch's state and of what the user's objects hold."""

import gc
import linecache
import logging
import os
import random
import signal
import sys
import threading
import warnings
from typing import Any

import numpy
import torch

from support.guard_play import Picture

_LOGGERS = ("torch", "torch._dynamo", "torch._functorch", "torch.fx", "plumbline")


def process_state() -> dict[str, Any]:
    """Return what belongs to the process and to torch, as values that can be compared."""
    return {
        "warnings": list(warnings.filters),
        "show warning": warnings.showwarning,
        "source lines": {name for name in linecache.cache if name.startswith("<plumbline")},
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "path": list(sys.path),
        "trace": (sys.gettrace(), sys.getprofile(), threading.gettrace()),
        "hooks": (sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook),
        "limits": (sys.getrecursionlimit(), sys.getswitchinterval()),
        "collector": (gc.isenabled(), gc.get_threshold(), len(gc.callbacks)),
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "threads": threading.active_count(),
        "logging": [(logging.getLogger(name).level, list(logging.getLogger(name).handlers)) for name in _LOGGERS],
        "builtins": dict(vars(sys.modules["builtins"])),
        "random": (random.getstate(), str(numpy.random.get_state()), torch.get_rng_state().tolist()),
        **torch_state(),
    }


def torch_state() -> dict[str, Any]:
    """Return torch's modes, and which attributes its own classes have."""
    return {
        "grad mode": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "autocast": [(torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda")],
        "autocast cache": torch.is_autocast_cache_enabled(),
        "defaults": (torch.get_default_dtype(), torch.get_default_device()),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "threads of torch": torch.get_num_threads(),
        "modes": torch._C._len_torch_function_stack(),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "hooks of modules": {
            name: dict(value)
            for name, value in vars(torch.nn.modules.module).items()
            if name.startswith("_global") and isinstance(value, dict)
        },
        "classes": {kind: dict(vars(kind)) for kind in (torch.Tensor, torch.nn.Module, torch.nn.Linear, torch.Size)},
        "functions": {
            name: vars(value)
            for name, value in vars(torch.nn.functional).items()
            if callable(value) and isinstance(getattr(value, "__dict__", None), dict)
        },
    }


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the names of what has changed."""
    return [name for name, value in before.items() if after[name] != value]


def picture_of(*objects: Any) -> Any:
    """Return a picture of objects with all they hold: attributes of functions, tensors and modules, too."""
    return Picture().of(objects)
