"""Functions and classes that the user names as boundaries by import path; they are replaced while a session is open."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

from plumbline.compiler.base.errors import UserError

WrapCallable = Callable[[Callable[..., Any]], Callable[..., Any]]


class Target:
    """One named target; `replace` wraps it everywhere it is bound, `restore` undoes that."""

    def __init__(self, path: str, owner: Any, name: str) -> None:
        self.path = path
        self._owner = owner
        self._name = name
        self._original = vars(owner)[name]
        self._places: list[tuple[Any, str, Any]] = []

    def replace(self, wrap: WrapCallable) -> None:
        """Wrap the function (of a class, its `__call__`), also where other modules have imported it by name."""
        original = self._original
        if isinstance(original, type):
            self._set(original, "__call__", wrap(_call_of(original)))
            return
        if isinstance(original, (staticmethod, classmethod)):
            self._set(self._owner, self._name, type(original)(wrap(original.__func__)))
            return
        wrapped = wrap(original)
        self._set(self._owner, self._name, wrapped)
        if not isinstance(self._owner, type):
            for module in list(sys.modules.values()):
                for name, value in list(getattr(module, "__dict__", {}).items()):
                    if value is original and module is not self._owner:
                        self._set(module, name, wrapped)

    def restore(self) -> None:
        """Restore every place that was replaced."""
        while self._places:
            owner, name, value = self._places.pop()
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)

    def _set(self, owner: Any, name: str, value: Any) -> None:
        self._places.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)


_ABSENT = object()


def _call_of(kind: type) -> Callable[..., Any]:
    """Return the `__call__` that instances of a class have; raises UserError for a class without one."""
    for base in kind.__mro__:
        if "__call__" in vars(base):
            call: Callable[..., Any] = vars(base)["__call__"]
            return call
    raise UserError(f"target {kind.__qualname__} is a class without __call__", hint="name one of its methods")


def find_target(path: str) -> Target:
    """Import the target `package.module.name` or `package.module:Class.method`; raises UserError if there is none."""
    module_name, attributes = _split(path)
    try:
        owner: Any = importlib.import_module(module_name)
    except ImportError as error:
        hint = "give package.module:function, importable from where pytest runs"
        raise UserError(f"compile target {path!r} cannot be imported", why=str(error), hint=hint) from error
    for name in attributes[:-1]:
        owner = getattr(owner, name, None)
    last = attributes[-1] if attributes else ""
    if owner is None or last not in getattr(owner, "__dict__", {}):
        hint = f"check the name after {module_name}"
        raise UserError(f"compile target {path!r} does not exist", why=f"{module_name} has no {last!r}", hint=hint)
    target = vars(owner)[last]
    if not (callable(target) or isinstance(target, (staticmethod, classmethod))):
        raise UserError(f"compile target {path!r} is not callable", hint="name a function, a method or a class")
    return Target(path, owner, last)


def _split(path: str) -> tuple[str, list[str]]:
    """Split at the colon, or before the first part that is not a module."""
    if ":" in path:
        module, _, rest = path.partition(":")
        return module, rest.split(".")
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            if importlib.util.find_spec(".".join(parts[:length])) is not None:
                return ".".join(parts[:length]), parts[length:]
        except (ImportError, AttributeError, ValueError):
            continue
    return parts[0], parts[1:] or [""]
