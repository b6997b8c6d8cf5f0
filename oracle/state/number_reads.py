"""Whether a program reads numbers out of tensors: only such numbers may differ from eager's by rounding."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.overrides import TorchFunctionMode

_READING = frozenset(
    {"item", "tolist", "numpy", "__float__", "__int__", "__complex__", "__array__", "__index__", "__format__"}
)


class NumberReads(TorchFunctionMode):
    """Notes whether a function that gives numbers of a tensor's is called.  seen: one has been."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the function."""
        self.seen = self.seen or getattr(func, "__name__", "") in _READING
        return func(*args, **(kwargs or {}))
