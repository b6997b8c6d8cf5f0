"""Settings of torch's parts and of the standard library that a program may leave changed; rows as in `process_state`.

A row reads without side effects and costs a microsecond: all are read around every run.  Registries that imports fill
(where modules are searched for, how classes are pickled) are compared in one direction: compilers import as well.
"""

import builtins
import copyreg
import csv
import decimal
import functools
import gc
import locale
import logging
import signal
import socket
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
import torch
from torch.utils.hooks import RemovableHandle

from plumbline.compiler.base.torch_facts import (
    function_mode_depth,
    leave_function_modes,
    leave_tensor_hooks,
    print_options,
    set_print_options,
    tensor_hooks,
    validates_distributions,
)
from plumbline.compiler.stored.torch_switches import forward_ad_depth, leave_forward_ad, set_backward_threads

from .kinds import is_library_module
from .switch import Switch

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM", "SIGUSR1", "SIGUSR2") if hasattr(signal, name)
)
_TINY = 1e-310  # becomes 0 where the processor flushes such numbers


def _attribute(name: str, holder: Any, attribute: str) -> Switch:
    return Switch(name, lambda: getattr(holder, attribute), lambda value: setattr(holder, attribute, value))


def _list(name: str, held: Callable[[], list[Any]], *, by_import: bool = False) -> Switch:
    """Return the row of a list; what is set back is the list held then: programs bind `sys.path` to another one."""

    def refill(saved: Sequence[Any]) -> None:
        held()[:] = saved

    return Switch(name, lambda: list(held()), refill, by_import=by_import)


def _set_signals(saved: Mapping[Any, Any]) -> None:
    """Set handlers back; only the main thread may, and one that was not set from Python cannot be."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in saved.items():
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)


def _decimals() -> tuple[object, ...]:
    context = decimal.getcontext()
    traps = tuple(context.traps.values())
    return context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp, traps


def _set_decimals(saved: tuple[Any, ...]) -> None:
    context = decimal.getcontext()
    context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp = saved[:6]
    context.traps.update(zip(context.traps, saved[6], strict=True))


def _builtins() -> dict[str, object]:
    return vars(builtins).copy()


def _other_builtins(eager: Mapping[str, object], actual: Mapping[str, object]) -> bool:
    return bool((eager.keys() ^ actual.keys()) - {"_"})  # that is the prompt's last result


def _set_builtins(saved: Mapping[str, object]) -> None:
    for name in _builtins().keys() - saved.keys():
        delattr(builtins, name)
    vars(builtins).update(saved)


def _pickled() -> dict[type, Any]:
    return dict(copyreg.dispatch_table)


def _set_pickled(saved: Mapping[Any, Any]) -> None:
    for kind in _pickled().keys() - saved.keys():
        del copyreg.dispatch_table[kind]
    copyreg.dispatch_table.update(saved)


def _hooks_for_all(module: Any) -> Switch:
    """Hooks that run for every module or optimizer; torch keeps them as dictionaries at the top of a module."""
    short = module.__name__.rpartition(".")[2]
    held = vars(module)
    names = [name for name, value in held.items() if name.startswith("_global_") and isinstance(value, dict)]

    def read() -> dict[str, dict[Any, Any]]:
        return {name: dict(held[name]) for name in names}

    def write(saved: Mapping[str, Mapping[Any, Any]]) -> None:
        for name, hooks in saved.items():
            held[name].clear()
            held[name].update(hooks)

    return Switch(f"hooks of every {short}", read, write, lambda eager, actual: _counts(eager) != _counts(actual))


def _counts(held: Mapping[str, Mapping[Any, Any]]) -> dict[str, int]:
    return {name: len(hooks) for name, hooks in held.items()}  # each run registers functions of its own


def _finalisers() -> dict[Any, Any]:
    """Return the finalisers that are registered, those of libraries apart."""
    held = vars(weakref.finalize)["_registry"].items()
    return {key: info for key, info in held if not is_library_module(getattr(info.func, "__module__", None))}


_OF_RUNS: set[Any] = set()
"""Finalisers that runs have registered and that were taken away after them; others end with their objects."""
_MOST_OF_RUNS = 4096


def _set_finalisers(saved: Mapping[Any, Any]) -> None:
    if len(_OF_RUNS) > _MOST_OF_RUNS:
        _OF_RUNS.clear()
    for key in _finalisers().keys() - saved.keys():
        key.detach()
        _OF_RUNS.add(key)


def _lacks_finalisers(eager: Mapping[Any, Any], actual: Mapping[Any, Any]) -> bool:
    return len(actual.keys() - eager.keys()) < len((eager.keys() - actual.keys()) & _OF_RUNS)


def _attention(kind: str) -> Switch:
    backend = torch.backends.cuda
    read = getattr(backend, f"{kind}_sdp_enabled")
    return Switch(f"{kind} attention", read, getattr(backend, f"enable_{kind}_sdp"))


def _reduced_precision() -> list[Switch]:
    """Return the rows of what torch's libraries may compute with fewer digits, as far as this version has them."""
    backends = torch.backends
    named = [
        ("cuda.matmul", "allow_tf32"),
        ("cuda.matmul", "allow_fp16_reduced_precision_reduction"),
        ("cuda.matmul", "allow_bf16_reduced_precision_reduction"),
        ("cudnn", "allow_tf32"),
        ("mkldnn", "deterministic"),
        ("opt_einsum", "enabled"),
        ("opt_einsum", "strategy"),
        ("quantized", "engine"),
    ]
    rows = [(name, functools.reduce(getattr, name.split("."), backends), attribute) for name, attribute in named]
    return [_unless_mixed(f"{name}.{attribute}", holder, attribute) for name, holder, attribute in rows]


def _unless_mixed(name: str, holder: Any, attribute: str) -> Switch:
    """Return the row of an attribute; None stands for settings that contradict each other, which torch refuses."""

    def read() -> Any:
        try:
            return getattr(holder, attribute)
        except RuntimeError:
            return None

    return Switch(name, read, lambda saved: None if saved is None else setattr(holder, attribute, saved))


def _precisions() -> tuple[str, ...]:
    """Return what each library's products and convolutions may round to; programs set one, or all by one name."""
    return tuple(_lowered(holder) for holder in _HOLDERS)


def _lowered(holder: Any) -> str:
    return str(holder.fp32_precision)


def _set_precisions(saved: Sequence[str]) -> None:
    for holder, value in zip(_HOLDERS, saved, strict=True):
        if holder.fp32_precision != value:
            holder.fp32_precision = value


_HOLDERS: tuple[Any, ...] = tuple(
    holder
    for holder in (
        torch.backends,
        *(
            getattr(getattr(torch.backends, library), part, None)
            for library, parts in (("mkldnn", ("matmul", "conv", "rnn")), ("cudnn", ("conv", "rnn")))
            for part in parts
        ),
        torch.backends.cuda.matmul,
    )
    if hasattr(holder, "fp32_precision")
)
"""From the outermost: where one of them is set, those inside of it follow until they are set themselves."""


def _sparse_checks() -> bool:
    return bool(torch.sparse.check_sparse_tensor_invariants.is_enabled())  # type: ignore[no-untyped-call]  # torch leaves it untyped


def _set_sparse_checks(saved: bool) -> None:
    checks = torch.sparse.check_sparse_tensor_invariants
    (checks.enable if saved else checks.disable)()  # type: ignore[no-untyped-call]  # torch leaves it untyped


def _other_function(eager: Any, actual: Any) -> bool:
    """Return whether two functions have other code; each run may make its own."""
    return eager is not actual and getattr(eager, "__code__", eager) != getattr(actual, "__code__", actual)


def _sharing_strategy() -> str:
    return str(torch.multiprocessing.get_sharing_strategy())  # type: ignore[no-untyped-call]  # torch leaves it untyped


def _set_sharing_strategy(saved: str) -> None:
    torch.multiprocessing.set_sharing_strategy(saved)  # type: ignore[no-untyped-call]  # torch leaves it untyped


def _safe_globals() -> tuple[Any, ...]:
    """Return what the program lets be loaded; modules of torch's add classes of their own where they are imported."""
    return tuple(sorted((one for one in torch.serialization.get_safe_globals() if not _is_torchs(one)), key=str))


def _set_safe_globals(saved: Sequence[Any]) -> None:
    torchs = [one for one in torch.serialization.get_safe_globals() if _is_torchs(one)]
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals([*torchs, *saved])


def _is_torchs(one: Any) -> bool:
    kind = one[0] if isinstance(one, tuple) else one
    return str(getattr(kind, "__module__", "")).partition(".")[0] == "torch"


_FUTURE = torch.__future__

LIBRARY_SWITCHES: tuple[Switch, ...] = (
    *_reduced_precision(),
    Switch("precision of libraries", _precisions, _set_precisions),
    Switch("checks of sparse tensors", _sparse_checks, _set_sparse_checks),
    Switch("threads of backwards", torch.autograd.is_multithreading_enabled, set_backward_threads),
    Switch("levels of forward-mode AD", forward_ad_depth, leave_forward_ad),
    Switch("sharing of memory between processes", _sharing_strategy, _set_sharing_strategy),
    Switch("classes that may be loaded", _safe_globals, _set_safe_globals),
    Switch("profile function", sys.getprofile, sys.setprofile, _other_function),
    _attribute("filling of new memory", torch.utils.deterministic, "fill_uninitialized_memory"),
    Switch("flushing of tiny numbers", lambda: _TINY * 1.0 == 0, torch.set_flush_denormal),
    Switch("number of modes for functions", function_mode_depth, leave_function_modes),
    Switch(
        "hooks for saved tensors",
        tensor_hooks,
        leave_tensor_hooks,
        lambda eager, actual: bool(eager) != bool(actual),
    ),
    Switch(
        "fast path of transformers", torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled
    ),
    *(_attention(kind) for kind in ("flash", "mem_efficient", "math")),
    Switch("print options of torch", print_options, set_print_options),
    Switch(
        "validation of distributions",
        validates_distributions,
        torch.distributions.Distribution.set_default_validate_args,
        by_import=True,  # stock's compiler switches it off
    ),
    Switch(  # hooks are kept by this number; which one comes next says nothing by itself
        "number of the next hook",
        lambda: RemovableHandle.next_id,
        lambda number: setattr(RemovableHandle, "next_id", number),
        lambda eager, actual: False,
    ),
    _hooks_for_all(sys.modules["torch.nn.modules.module"]),
    _hooks_for_all(sys.modules["torch.optim.optimizer"]),
    Switch(
        "swapping of parameters",
        _FUTURE.get_swap_module_params_on_conversion,
        _FUTURE.set_swap_module_params_on_conversion,
    ),
    Switch(
        "overwriting of parameters",
        _FUTURE.get_overwrite_module_params_on_conversion,
        _FUTURE.set_overwrite_module_params_on_conversion,
    ),
    Switch("print options of NumPy", numpy.get_printoptions, lambda saved: numpy.set_printoptions(**saved)),
    _list("sys.path", lambda: sys.path, by_import=True),
    _list("sys.meta_path", lambda: sys.meta_path, by_import=True),
    Switch("switch interval", sys.getswitchinterval, sys.setswitchinterval),
    Switch("most digits of an integer", sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    Switch("when garbage is collected", gc.get_threshold, lambda saved: gc.set_threshold(*saved)),
    _list("callbacks of the garbage collector", lambda: gc.callbacks, by_import=True),
    Switch("finalisers", _finalisers, _set_finalisers, _lacks_finalisers),
    Switch("decimal context", _decimals, _set_decimals),
    Switch("locale", lambda: locale.setlocale(locale.LC_ALL), lambda saved: locale.setlocale(locale.LC_ALL, saved)),
    *(_attribute(f"sys.{name}", sys, name) for name in ("excepthook", "displayhook", "unraisablehook")),
    _attribute("threading.excepthook", threading, "excepthook"),
    Switch("trace function", sys.gettrace, sys.settrace, _other_function),
    Switch("handlers of signals", lambda: {number: signal.getsignal(number) for number in _SIGNALS}, _set_signals),
    Switch("what logging disables", lambda: logging.root.manager.disable, logging.disable),
    Switch("level of the root logger", lambda: logging.root.level, logging.root.setLevel),
    _list("handlers of the root logger", lambda: logging.root.handlers),
    Switch("default timeout of sockets", socket.getdefaulttimeout, socket.setdefaulttimeout),
    Switch("largest field of csv", csv.field_size_limit, csv.field_size_limit),
    Switch("copyreg.dispatch_table", _pickled, _set_pickled, lambda eager, actual: not eager.keys() <= actual.keys()),
    Switch("builtins", _builtins, _set_builtins, _other_builtins),
)
