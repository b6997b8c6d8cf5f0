"""Where a fresh process finds an object: module and attribute path, verified by looking there."""

import importlib
import sys
from functools import cache
from importlib.metadata import packages_distributions


def import_path(value: object) -> tuple[str, str] | None:
    """Return (module, attribute path) of a function, class or operator; None when no import leads to this object."""
    module, attribute = str(getattr(value, "__module__", None)), str(getattr(value, "__qualname__", ""))
    name = str(getattr(value, "__name__", ""))
    if not attribute or "<locals>" in attribute or not _stays(module):
        return None
    # A builtin method of Tensor says neither module nor class of its own.
    homes = [
        (module, attribute),
        ("builtins", attribute),
        ("torch", f"Tensor.{name}"),
        ("torch", name),
        ("torch.nn.functional", name),
    ]
    return next((home for home in homes if _found_at(*home) is value), None)


def _stays(module: str) -> bool:
    """Return whether a module is there in every process: installed ones are; scripts, tests and their helpers not."""
    file = getattr(sys.modules.get(module), "__file__", None)
    top = module.split(".")[0]
    return module != "__main__" and (file is None or top in sys.stdlib_module_names or top in _installed())


@cache
def _installed() -> frozenset[str]:
    return frozenset(packages_distributions())


def _found_at(module: str, attribute: str) -> object:
    try:
        value: object = sys.modules.get(module) or importlib.import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError, ValueError):
        return None
    return value
