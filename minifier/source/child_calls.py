"""The calls of a module's children: what could be compiled in the place of the whole module, and on which inputs."""

import contextlib
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

MOST_LITERALS = 64
"""Whole numbers of a tensor that are written out; of more of them, zeros are enough of an input."""


@dataclass(frozen=True, slots=True)
class ChildCall:
    """One call of a child.

    path: of the child, from the module that is compiled.  arguments: as text, with random numbers of the same shapes.
    made: an expression that makes an equal module of torch's own; "" for others.  home: (module, class) of one that
    its configuration alone makes, or (not configured) nothing at all.  training: its mode.  size: modules in it.
    """

    path: str
    arguments: str
    made: str
    home: tuple[str, str] | None
    training: bool
    size: int
    configured: bool = True


def child_calls(module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[ChildCall, ...]:
    """Run a module and return the calls of its children, the smallest first, one of those that are alike."""
    found: dict[object, ChildCall] = {}

    def note(path: str, child: torch.nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        texts = [_text(value) for value in given] + [_named(name, value) for name, value in named.items()]
        if None not in texts:
            arguments = ", ".join(text for text in texts if text is not None)
            home, configured = _home(child)
            size = len(list(child.modules()))
            call = ChildCall(path, arguments, _made(child), home, child.training, size, configured)
            found.setdefault((type(child), call.made, call.size, arguments), call)

    children = [(path, child) for path, child in module.named_modules() if path]
    hooks = [child.register_forward_pre_hook(partial(note, path), with_kwargs=True) for path, child in children]
    try:
        with contextlib.suppress(Exception):  # what ran until then counts
            module(*args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    return tuple(sorted(found.values(), key=lambda call: call.size))


def _named(name: str, value: object) -> str | None:
    text = _text(value)
    return None if text is None else f"{name}={text}"


def _text(value: object) -> str | None:
    """Return an expression for a value like this one, None for what has none."""
    if isinstance(value, torch.Tensor):
        return _tensor_text(value)
    if isinstance(value, tuple | list):
        parts = [_text(part) for part in value]
        inner = ", ".join(part for part in parts if part is not None)
        written = f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(parts) == 1)})"
        return written if type(value) in (tuple, list) and None not in parts else None
    return repr(value) if value is None or type(value) in (bool, int, float, str) else None


def _tensor_text(value: torch.Tensor) -> str | None:
    if type(value) is not torch.Tensor or value.layout != torch.strided or value.device.type != "cpu":
        return None
    shape = ", ".join(map(str, value.shape)) or "()"
    dtype = "" if value.dtype == torch.float32 else f", dtype={value.dtype}"
    if value.is_floating_point() or value.is_complex():
        return f"torch.randn({shape}{dtype}{', requires_grad=True' * value.requires_grad})"
    if value.numel() > MOST_LITERALS:
        return f"torch.zeros({shape}, dtype={value.dtype})"
    return f"torch.tensor({value.tolist()}, dtype={value.dtype})"


def _made(child: torch.nn.Module) -> str:
    """Return an expression of torch's own module from how it prints, which is how it is made, where that is so."""
    if not type(child).__module__.startswith("torch.nn.modules"):
        return ""
    text = f"torch.nn.{child!r}"
    try:
        twin = eval(text, {"torch": torch})
    except Exception:
        return ""
    same = type(twin) is type(child) and _shapes(twin) == _shapes(child)
    return text if same else ""


def _shapes(module: torch.nn.Module) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in module.state_dict().items()}


def _home(child: torch.nn.Module) -> tuple[tuple[str, str] | None, bool]:
    """Return module and class of a child that needs no argument but its configuration, and whether it needs that."""
    kind = type(child)
    if getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is not kind:
        return None, True
    parameters = list(inspect.signature(kind).parameters.values())
    needed = [one.name for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    return ((kind.__module__, kind.__qualname__) if needed in ([], ["config"]) else None), bool(needed)
