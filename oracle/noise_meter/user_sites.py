"""Which line of the user's program an operator belongs to, and inside which module it runs.

Operators of a backward belong to the line whose gradient they are: an autograd node bears a number that its forward
operator was given, too.
"""

import sys
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType, FrameType

from torch import nn

from plumbline.compiler.base.torch_facts import next_gradient_number, running_gradient_number

_NOT_USERS = frozenset({"torch", "plumbline", "numpy"})
_ENGINE = "torch.autograd.graph"


@dataclass(frozen=True, slots=True)
class UserSite:
    """A line of the user's: file, line (0 where there is none), function, path of the module, whether in a backward."""

    file: str
    line: int
    function: str
    module: str
    backward: bool = False


NOWHERE = UserSite("", 0, "", "")


class SiteFinder:
    """Finds the site of the operator that is being dispatched."""

    def __init__(self) -> None:
        self._known: dict[CodeType, str] = {}
        self._forward: dict[int, UserSite] = {}
        self._paths: dict[tuple[int, ...], str] = {}

    def site(self) -> UserSite:
        """Return the innermost line of the user's, as seen from an operator in flight."""
        frame, modules, found = sys._getframe(1), [], None
        number = running_gradient_number()
        in_engine = False
        step: FrameType | None = frame
        while step is not None:
            code = step.f_code
            kind = self._known.get(code)
            if kind is None:
                kind = self._known[code] = _kind(step)
            if kind == "user" and found is None:
                found = (code.co_filename, step.f_lineno, code.co_name)
            elif kind == "engine" and found is None:
                in_engine = True
            elif kind == "module":
                module = step.f_locals.get("self")
                if isinstance(module, nn.Module):
                    modules.append(module)
            step = step.f_back
        if number is not None and (in_engine or found is None):
            forward = self._forward.get(number, NOWHERE)
            if forward is not NOWHERE:
                return UserSite(forward.file, forward.line, forward.function, forward.module, backward=True)
        path = self._path(modules[::-1])
        if found is None:
            return UserSite("", 0, "", path, backward=number is not None)
        site = UserSite(*found, path, backward=number is not None)
        if number is None:
            self._forward.setdefault(next_gradient_number() - 1, site)  # the node's own operator comes first
        return site

    def _path(self, chain: list[nn.Module]) -> str:
        """Return the path of the innermost of modules that call each other: its names inside the outermost one."""
        if not chain:
            return ""
        key = tuple(map(id, chain))
        path = self._paths.get(key)
        if path is None:
            names = [type(chain[0]).__name__]
            for outer, inner in pairwise(chain):
                name = next((name for name, each in outer.named_modules() if each is inner and name), "")
                names.append(name or type(inner).__name__)
            path = self._paths[key] = ".".join(names)
        return path


def _kind(frame: FrameType) -> str:
    """Return whether code is the user's, calls a module, starts a backward, or is of no interest."""
    module = str(frame.f_globals.get("__name__") or "")
    root = module.partition(".")[0]
    if module == "torch.nn.modules.module" and frame.f_code.co_name == "_call_impl":
        return "module"
    if module == _ENGINE:
        return "engine"
    if root in _NOT_USERS or (root in sys.stdlib_module_names and root != "__main__"):
        return "other"
    return "other" if frame.f_code.co_filename.startswith("<frozen ") else "user"
