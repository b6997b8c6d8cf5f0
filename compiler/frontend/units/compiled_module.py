"""CompiledModule: an `nn.Module` that is another one, but for its call."""

import copy
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch

from ...base.errors import UserError

_PREFIX = "_orig_mod."
_OWN = frozenset({"_original", "_entry", "_orig_mod"})


_Entry = Callable[[torch.nn.Module], Callable[..., Any]]


class CompiledModule(torch.nn.Module):
    """The compiled form of a module.

    It shares the original's `__dict__`: parameters, buffers, submodules, hooks, flags and plain attributes are the
    same objects under the same names, so `state_dict()`, `train()`, `to()` and assignment work on the original.
    Methods of the original's class are found through `__getattr__`.
    """

    __slots__ = ("_entry", "_forward_entry", "_original", "_running", "_running_forward")
    _plumbline_compiled = True  # inside other compiled code the original is evaluated

    def __new__(cls, original: torch.nn.Module, entry: object, forward: object = None) -> "CompiledModule":
        """Return an object of a class that has the container methods of the original's, and no others."""
        del entry, forward
        return super().__new__(_kind_for(type(original)))

    def __init__(self, original: torch.nn.Module, entry: _Entry, forward: _Entry | None = None) -> None:
        object.__setattr__(self, "__dict__", original.__dict__)
        object.__setattr__(self, "_original", original)
        object.__setattr__(self, "_entry", entry)
        object.__setattr__(self, "_forward_entry", forward)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module, hooks included, through the compiler."""
        run = self._entry(self._original)
        _hold(self, run)  # the family knows it weakly: without a holder each call would make it again
        return run(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the original's forward, without its hooks; through the compiler where an entry for it was given."""
        entry: _Entry | None = object.__getattribute__(self, "_forward_entry")
        if entry is None:
            return self._original.forward(*args, **kwargs)
        run = entry(self._original)
        _hold_forward(self, run)
        return run(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Look in the original: registries first, then its class."""
        original = object.__getattribute__(self, "_original")
        return original if name == "_orig_mod" else getattr(original, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Assign to the original."""
        setattr(self._original, name, value)

    def __delattr__(self, name: str) -> None:
        """Delete from the original."""
        delattr(self._original, name)

    def load_state_dict(self, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        """Load the original's keys; keys with stock's `_orig_mod.` prefix are taken too."""
        if any(key.startswith(_PREFIX) for key in state_dict):
            state_dict = {key.removeprefix(_PREFIX): value for key, value in state_dict.items()}
        return self._original.load_state_dict(state_dict, *args, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the original's state."""
        return self._original.state_dict(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Raise UserError: it is compiled, and torch's own method would compile the original by stock's compiler."""
        raise UserError("the module is already compiled", hint="call plumbline.compile on the original, with arguments")

    def train(self, mode: bool = True) -> "CompiledModule":
        """Set the training flag of the original."""
        self._original.train(mode)
        return self

    def __repr__(self) -> str:
        return f"CompiledModule({self._original!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the original: the compiled form belongs to this process."""
        return (_identity, (self._original,))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Copy the original; the copy is uncompiled."""
        return copy.deepcopy(self._original, memo)


_hold: Callable[[CompiledModule, object], None] = vars(CompiledModule)["_running"].__set__  # past the module's own
_hold_forward: Callable[[CompiledModule, object], None] = vars(CompiledModule)["_running_forward"].__set__


_CONTAINER = (
    "__getitem__",
    "__setitem__",
    "__delitem__",
    "__len__",
    "__iter__",
    "__contains__",
    "__reversed__",
    "__enter__",
    "__exit__",
)  # looked up on the class by Python, never by __getattr__


_KINDS: WeakKeyDictionary[type, type[CompiledModule]] = WeakKeyDictionary()


def _kind_for(original: type) -> type[CompiledModule]:
    names = [name for name in _CONTAINER if hasattr(original, name)]
    if not names:
        return CompiledModule
    if original not in _KINDS:
        methods = {name: _forwarded(name) for name in names}
        _KINDS[original] = type("CompiledModule", (CompiledModule,), {"__slots__": (), **methods})
    return _KINDS[original]


def _forwarded(name: str) -> Callable[..., Any]:
    def call(self: CompiledModule, *args: Any) -> Any:
        return getattr(type(self._original), name)(self._original, *args)

    return call


def _identity(value: Any) -> Any:
    return value
