"""Replaces torch.compile as soon as torch is imported; imports no torch itself, so that installing costs nothing."""

import functools
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from .stock_mark import STOCK

_INTERCEPTION = "plumbline.oracle.harness.interception"


class _TorchFinder(importlib.abc.MetaPathFinder):
    """Finds torch through the other finders and intercepts once the module has been executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch":
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _TorchLoader(spec.loader)
                return spec
        return None


class _TorchLoader(importlib.abc.Loader):
    """Loads torch through its own loader, then intercepts."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        _intercept()


_finder = _TorchFinder()


def install_import_interception() -> None:
    """Intercept torch.compile now, or at the moment torch is imported."""
    if "torch" in sys.modules:
        _intercept()
    elif _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def uninstall_import_interception() -> None:
    """Restore torch.compile and stop watching imports."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    torch = sys.modules.get("torch")
    stock = getattr(getattr(torch, "compile", None), STOCK, None)
    if torch is not None and stock is not None:
        vars(torch)["compile"] = stock
    elif _INTERCEPTION in sys.modules:
        from .interception import stop_intercepting  # loaded already: nothing heavy is imported here

        stop_intercepting()


def _intercept() -> None:
    """Replace torch.compile by a function that loads the judge at its first call.

    Not at once, because torch may be being imported by a module of the judge itself.
    """
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    interception = sys.modules.get(_INTERCEPTION)
    if interception is not None and hasattr(interception, "stop_intercepting"):  # imported earlier, and to its end
        interception.start_intercepting()
        return
    names = vars(sys.modules["torch"])
    stock = names["compile"]
    if hasattr(stock, STOCK):
        return

    @functools.wraps(stock)
    def compile(*args: Any, **kwargs: Any) -> Any:  # noqa: A001  the name that it replaces
        from .interception import start_intercepting  # imports torch's compiler, which is not needed before this call

        start_intercepting()
        return names["compile"](*args, **kwargs)

    setattr(compile, STOCK, stock)
    names["compile"] = compile
