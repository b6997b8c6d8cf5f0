"""Replaces torch.compile as soon as torch is imported; imports no torch itself, so that installing costs nothing."""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

from .compile_name import load_at_first_call, restore_stock

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
    if _INTERCEPTION in sys.modules:
        from .interception import stop_intercepting  # loaded already: nothing heavy is imported here

        stop_intercepting()
    elif "torch" in sys.modules:
        restore_stock(vars(sys.modules["torch"]))


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
    load_at_first_call(vars(sys.modules["torch"]), _load_interception)


def _load_interception() -> None:
    from .interception import start_intercepting  # imports the judge, which is not needed before this call
    from .stock_torch import install  # and torch's compiler

    start_intercepting()
    install()
