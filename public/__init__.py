"""plumbline: check whether compiled PyTorch gives the right answer. This module has the public names.

Importing any part of plumbline runs this file, so it imports almost nothing. Names are loaded on first use (PEP 562),
and torch with them.
"""

from importlib import import_module
from os import environ

from .version import __version__ as __version__

_COMPILER = "plumbline.compiler."
_LOGS = "PLUMBLINE_LOGS"
_LOGS_OF_TORCH = "TORCH_LOGS"
_STARTED: list[bool] = []  # whether the environment was asked what to print

# Public name -> the module that it is, or `module:attribute`.
_LAZY = {
    "config": "plumbline.compiler.base.config:CONFIG",
    "oracle": "plumbline.oracle",
    "testing": "plumbline.testing",
    "torch_backend": "plumbline.compiler.torch_backend:torch_backend",
    "CompileProfiler": "plumbline.compiler.profiling:CompileProfiler",
    "aot_autograd": "plumbline.compiler.ahead_of_time:aot_autograd",
    "aot_function": "plumbline.compiler.whole_graphs:aot_function",
    "aot_module": "plumbline.compiler.whole_graphs:aot_module",
    "allow_in_graph": "plumbline.compiler.controls:allow_in_graph",
    "assert_same": "plumbline.oracle:assert_same",
    "assume_constant_result": "plumbline.compiler.controls:assume_constant_result",
    "compile": "plumbline.compiler.api:compile",
    "compile_times": "plumbline.compiler.profiling:compile_times",
    "default_partition": "plumbline.compiler.ahead_of_time:default_partition",
    "disable": "plumbline.compiler.controls:disable",
    "disallow_in_graph": "plumbline.compiler.controls:disallow_in_graph",
    "export": "plumbline.compiler.whole_graphs:export",
    "explain": "plumbline.compiler.api:explain",
    "graph_svg": "plumbline.compiler.graph_pictures:graph_svg",
    "graph_break": "plumbline.compiler.controls:graph_break",
    "is_compiling": "plumbline.compiler.controls:is_compiling",
    "is_dynamo_compiling": "plumbline.compiler.controls:is_dynamo_compiling",
    "list_backends": "plumbline.compiler.backends:list_backends",
    "mark_dynamic": "plumbline.compiler.dimension_marks:mark_dynamic",
    "mark_static": "plumbline.compiler.dimension_marks:mark_static",
    "mark_unbacked": "plumbline.compiler.dimension_marks:mark_unbacked",
    "maybe_mark_dynamic": "plumbline.compiler.dimension_marks:maybe_mark_dynamic",
    "measure_noise": "plumbline.oracle:measure_noise",
    "min_cut_partition": "plumbline.compiler.ahead_of_time:min_cut_partition",
    "profile": "plumbline.compiler.kernel_profile:profile",
    "register_backend": "plumbline.compiler.backends:register_backend",
    "reset": "plumbline.compiler.api:reset",
    "run": "plumbline.compiler.api:run",
    "set_logs": "plumbline.reports.live_log:set_logs",
    "skip": "plumbline.compiler.controls:skip",
    "wrap_numpy": "plumbline.compiler.numpy_functions:wrap_numpy",
}


def __getattr__(name: str) -> object:
    """Import and cache the object behind a public name."""
    place = _LAZY.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = place.partition(":")
    value: object = import_module(module)
    if module.startswith(_COMPILER):
        _start_logs()
    if attribute:
        value = getattr(value, attribute)
    globals()[name] = value
    return value


def _start_logs() -> None:
    """Start what the environment asks to be printed; once in a process."""
    topics = environ.pop(_LOGS, "")
    of_torch = environ.get(_LOGS_OF_TORCH, "")
    if not _STARTED and (topics or of_torch):
        log = import_module("plumbline.reports.live_log")
        if topics := topics or log.topics_of_torch(of_torch):
            log.start_live_log(topics)
    _STARTED.append(True)


def __dir__() -> list[str]:
    """Return the public names, including those not yet loaded."""
    return sorted({*globals(), *_LAZY})
