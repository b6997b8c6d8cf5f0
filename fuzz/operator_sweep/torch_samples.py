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
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db

OPERATORS: dict[str, Any] = {f"{info.name}.{info.variant_test_name}".rstrip("."): info for info in op_db}
"""Name, with the variant after a dot -> torch's description of the operator."""

MODULES: dict[str, Any] = {info.name: info for info in module_db}
"""Name -> torch's description of the module class."""
