"""torch's own tables of operators and modules with sample inputs: the only importer of `torch.testing._internal`.

They are not in `torch_facts`: the import takes seconds and changes switches of the process, which no compiled program
may pay for.  What breaks if torch moves a name: `plumbline sweep`, nothing else.
"""

import importlib.util
import sys
import types
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def _importable() -> Iterator[None]:
    """Let the import pass where the package expecttest is not installed, and put back the switches it sets.

    torch derives a test class from `expecttest.TestCase` that nothing here uses.
    """
    stand_in = importlib.util.find_spec("expecttest") is None
    if stand_in:
        module = types.ModuleType("expecttest")
        module.TestCase = unittest.TestCase  # type: ignore[attr-defined]  # modules take attributes
        sys.modules["expecttest"] = module
    frozen_flags = "__allow_nonbracketed_mutation_flag"  # the import forbids `torch.backends.x.flag = y` for good
    backends = getattr(torch.backends, "m", torch.backends)  # the module behind the object that stands for it
    before = getattr(backends, frozen_flags, None)
    try:
        yield
    finally:
        if stand_in:
            del sys.modules["expecttest"]
        if before is not None:
            setattr(backends, frozen_flags, before)


with _importable():
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db
    from torch.testing._internal.opinfo import core

# No test of torch's asks for samples here, and to look for it reads the source of every frame, once for each sample.
for _module in (common_utils, core):
    vars(_module)["extract_test_fn"] = lambda: None

OPERATORS: dict[str, Any] = {f"{info.name}.{info.variant_test_name}".rstrip("."): info for info in op_db}
"""Name, with the variant after a dot -> torch's description of the operator."""

USERS_MODULE = "operator_sweep_program"

MODULES: dict[str, Any] = {info.name: info for info in module_db}
"""Name -> torch's description of the module class."""


def inlined(function: Any) -> Any:
    """Return a function of torch's tests as one of a user's; others as they are.

    Compilers leave the files of torch's tests to plain Python, and ours does its own: a lambda of theirs would keep the
    operator in it out of every graph.  `wrapper_set_seed` in a lambda seeds torch before each call: here it only
    calls, and equal draws follow one another.
    """
    if not isinstance(function, types.FunctionType) or not function.__module__.startswith("torch.testing."):
        return function
    copy = _of_user(function)
    copy.__globals__["wrapper_set_seed"] = _of_user(_called)
    return copy


def _of_user(function: Any) -> types.FunctionType:
    """Return a copy that claims to be defined in a module of a user's."""
    code = function.__code__.replace(co_filename=f"<{USERS_MODULE}>")
    names = {**function.__globals__, "__name__": USERS_MODULE}
    copy = types.FunctionType(code, names, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _called(operator, *args, **kwargs):  # type: ignore[no-untyped-def]  # any function
    return operator(*args, **kwargs)
