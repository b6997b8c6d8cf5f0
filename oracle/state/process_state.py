"""The process-wide state that a program may change and not restore: one table of what is read and how it is set back.

What is not in the table is not judged, so a row is all that a new kind of state needs.
"""

import contextvars
import gc
import operator
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from plumbline.compiler.base.torch_facts import default_device_or_none

from .library_switches import LIBRARY_SWITCHES
from .switch import Switch

_DEVICES = ("cpu", "cuda")
_OF_COMPILERS = (
    "TORCH",
    "_TORCH",
    "TRITON",
    "PLUMBLINE",
    "PYTORCH",
    "CUDA_",
    "KINETO",
    "LLVM_",
    "XDG_",
    "TMP",
    "CC",
    "CXX",
)
"""How names of environment variables begin that compilers set for themselves."""
_PRIVATE = "_TORCH"
"""How names begin that torch's compiler sets for its children, with addresses: another value at each compile."""


def _deterministic(state: tuple[bool, bool]) -> None:
    torch.use_deterministic_algorithms(state[0], warn_only=state[1])


def _anomaly(state: tuple[bool, bool]) -> None:
    torch.autograd.set_detect_anomaly(*state)


def _autocast(device: str) -> tuple[Switch, Switch]:
    return (
        Switch(
            f"autocast of {device}",
            lambda: torch.is_autocast_enabled(device),
            lambda on: torch.set_autocast_enabled(device, on),
        ),
        Switch(
            f"autocast dtype of {device}",
            lambda: torch.get_autocast_dtype(device),
            lambda dtype: torch.set_autocast_dtype(device, dtype),
        ),
    )


def _matmul_precision() -> str | None:
    """Return the precision; None where libraries were given different ones, which torch then refuses to call one."""
    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:
        return None


def _set_matmul_precision(saved: str | None) -> None:
    if saved is not None:
        torch.set_float32_matmul_precision(saved)


def _backend_flag(backend: Any, name: str) -> Switch:
    short = backend.__name__.removeprefix("torch.backends.")
    return Switch(f"{short}.{name}", lambda: getattr(backend, name), lambda value: setattr(backend, name, value))


def _environment() -> dict[str, str]:
    return dict(os.environ)


def _other_environment(eager: Mapping[str, str], actual: Mapping[str, str]) -> bool:
    """Return whether variables differ, those apart that compilers set for themselves.

    Eager has them as well where it loads parts of a compiler, as derivatives of torch's do the first time.
    """
    names = {name for name in eager.keys() | actual.keys() if not name.startswith(_PRIVATE)}
    both = eager.keys() & actual.keys()
    kept = {name for name in names if name in both or not name.startswith(_OF_COMPILERS)}
    return any(eager.get(name) != actual.get(name) for name in kept)


def _set_environment(saved: Mapping[str, str]) -> None:
    for name in _environment().keys() - saved.keys():
        del os.environ[name]
    os.environ.update(saved)


def _collect_garbage(on: bool) -> None:
    (gc.enable if on else gc.disable)()


SWITCHES: tuple[Switch, ...] = (
    Switch("grad mode", torch.is_grad_enabled, torch.set_grad_enabled),
    Switch("default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Switch("default device", default_device_or_none, torch.set_default_device),
    Switch(
        "deterministic algorithms",
        lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        _deterministic,
    ),
    *(switch for device in _DEVICES for switch in _autocast(device)),
    Switch("autocast cache", torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    Switch("anomaly mode", lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()), _anomaly),
    Switch("float32 matmul precision", _matmul_precision, _set_matmul_precision),
    Switch("number of threads", torch.get_num_threads, torch.set_num_threads),
    Switch("always warning", torch.is_warn_always_enabled, torch.set_warn_always),
    *(_backend_flag(torch.backends.cudnn, name) for name in ("enabled", "benchmark", "deterministic")),
    _backend_flag(torch.backends.mkldnn, "enabled"),
    Switch("numpy.geterr()", numpy.geterr, lambda state: numpy.seterr(**state)),
    Switch("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit, operator.gt),  # compilers raise it
    Switch("garbage collection", gc.isenabled, _collect_garbage),
    Switch("working directory", os.getcwd, os.chdir),
    Switch("os.environ", _environment, _set_environment, _other_environment),
    *LIBRARY_SWITCHES,
)


BY_IMPORT = frozenset(switch.name for switch in SWITCHES if switch.by_import)
"""State that compilers change once, when they are loaded."""


@dataclass(frozen=True, slots=True, eq=False)
class ProcessState:
    """The values of all switches at one moment, by name; context variables beside them.

    contexts: values by variable; reference runs have a context of their own, so these are never set back.
    """

    values: Mapping[str, Any]
    contexts: Mapping["contextvars.ContextVar[Any]", Any]

    @classmethod
    def now(cls) -> "ProcessState":
        """Read everything."""
        return cls({switch.name: switch.read() for switch in SWITCHES}, dict(contextvars.copy_context()))

    def restore(self) -> None:
        """Set back what changed, and touch nothing else."""
        for switch in SWITCHES:
            if switch.read() != self.values[switch.name]:
                switch.write(self.values[switch.name])

    def differences(
        self, other: "ProcessState", variables: "frozenset[contextvars.ContextVar[Any]]"
    ) -> list[tuple[str, str]]:
        """Return each piece of state that is not the same in `other`, and the two values in words.

        variables: the context variables that count; compilers have some of their own.
        """
        found = [
            (switch.name, _words(ours, theirs))
            for switch in SWITCHES
            for ours, theirs in [(self.values[switch.name], other.values[switch.name])]
            if switch.differs(ours, theirs)
        ]
        return found + [
            (f"context variable {variable.name}", f"is {_shown(theirs)}, after eager's {_shown(ours)}")
            for variable in sorted(variables, key=lambda one: one.name)
            for ours, theirs in [(self.contexts.get(variable, _UNSET), other.contexts.get(variable, _UNSET))]
            if not _same(ours, theirs)
        ]


_UNSET = object()
_PLAIN = (int, float, str, bytes, bool, type(None), tuple, frozenset)


def _same(ours: object, theirs: object) -> bool:
    """Return whether two values of a context variable are alike; of objects that a run makes only the class counts."""
    if ours is theirs:
        return True
    if type(ours) is not type(theirs):
        return False
    return bool(ours == theirs) if isinstance(ours, _PLAIN) else True


def _shown(value: object) -> str:
    return "not set" if value is _UNSET else f"{value!r}"[:80]


def _words(ours: Any, theirs: Any) -> str:
    if isinstance(ours, dict):
        keys = [key for key in dict.fromkeys([*ours, *theirs]) if ours.get(key) != theirs.get(key)]
        parts = [f"{key} is {theirs.get(key, 'not set')!r}, after eager's {ours.get(key, 'not set')!r}" for key in keys]
        return "; ".join(parts)[:200]
    return f"is {theirs!r} after the call, {ours!r} after eager's"
