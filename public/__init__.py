"""plumbline: check whether compiled PyTorch gives the right answer. This module has the public names.

Importing any part of plumbline runs this file, so it imports almost nothing. Names are loaded on first use (PEP 562),
and torch with them.
"""

from importlib import import_module
from os import environ

from .version import __version__ as __version__

_COMPILER = "plumbline.compiler.api"
_LOGS = "PLUMBLINE_LOGS"

# Public name -> the module that it is, or `module:attribute`.
_LAZY = {
    "config": "plumbline.compiler.base.config:CONFIG",
    "oracle": "plumbline.oracle",
    "testing": "plumbline.testing",
    "torch_backend": "plumbline.compiler.torch_backend:torch_backend",
    **{
        name: f"plumbline.compiler.api:{name}"
        for name in (
            "CompileProfiler",
            "allow_in_graph",
            "assume_constant_result",
            "compile",
            "compile_times",
            "disable",
            "disallow_in_graph",
            "explain",
            "graph_break",
            "is_compiling",
            "is_dynamo_compiling",
            "list_backends",
            "mark_dynamic",
            "mark_static",
            "mark_unbacked",
            "maybe_mark_dynamic",
            "register_backend",
            "reset",
            "run",
            "skip",
            "wrap_numpy",
        )
    },
}


def __getattr__(name: str) -> object:
    """Import and cache the object behind a public name."""
    place = _LAZY.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = place.partition(":")
    value: object = import_module(module)
    if module == _COMPILER and (topics := environ.pop(_LOGS, "")):
        import_module("plumbline.reports.live_log").start_live_log(topics)
    if attribute:
        value = getattr(value, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, including those not yet loaded."""
    return sorted({*globals(), *_LAZY})
