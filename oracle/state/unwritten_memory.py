"""Memory that a program makes and does not write, filled with numbers of our choice: what depends on it has no value.

`torch.empty` and its relatives give whatever lies there, which nobody is held to.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch

from plumbline.compiler.base.torch_facts import DispatchMode

_MAKING = frozenset({"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"})
_GROWING = frozenset({"resize_", "resize_as_"})
FILLINGS = (0, 1)


class FilledMemory(DispatchMode):
    """Fills what is made without numbers.  made: whether there was any."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.made = False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call the operator, and write to the whole memory of what it makes."""
        resized = func.namespace == "aten" and func._schema.name.partition("::")[2] in _GROWING
        before = _elements(args[0]) if resized else 0
        result = func(*args, **(kwargs or {}))
        if resized and _elements(args[0]) > before:
            self.made = True
            _fill(args[0], self.number, before)
        if func.namespace == "aten" and func._schema.name.partition("::")[2] in _MAKING:
            self.made = True
            with suppress(RuntimeError, NotImplementedError):  # a subclass may know no filling
                _fill(result, self.number)
        return result


def _elements(value: Any) -> int:
    """Return for how many elements a tensor has memory."""
    plain = type(value) is torch.Tensor and value.layout == torch.strided and value.device.type != "meta"
    return int(value.untyped_storage().nbytes()) // int(value.element_size()) if plain else 0


def _fill(tensor: torch.Tensor, number: int, start: int = 0) -> None:
    """Write to the memory, its gaps included, from an element on; version counters do not change."""
    if type(tensor) is not torch.Tensor or tensor.layout != torch.strided or tensor.device.type == "meta":
        return
    flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())
    flat[start:].fill_(number)


def with_filled_memory(program: Callable[..., Any], filled: FilledMemory) -> Callable[..., Any]:
    """Return a program that runs as it is, in memory that is filled."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with filled:
            return program(*args, **kwargs)

    return run
