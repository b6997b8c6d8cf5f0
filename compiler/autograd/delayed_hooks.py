"""An error of a caller's saved-tensor hook comes after the writes of a graph, which are done when the graph has run.

Eager writes to an input where the program says so, and calls the hooks while it goes on.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from torch.autograd.graph import saved_tensors_hooks

from ..base.torch_facts import tensor_hooks

Values = TypeVar("Values")
Result = TypeVar("Result")


def run_before_hooks_fail(run: Callable[[], Values], finish: Callable[[Values], Result]) -> Result:
    """Return `finish(run())`; where a hook has raised in `run`, its error is raised when `finish` has run."""
    if not tensor_hooks():
        return finish(run())
    errors: list[Exception] = []
    pack, unpack = tensor_hooks()

    def keep(tensor: Any) -> Any:
        if not errors:  # eager calls none after the first that fails
            try:
                return pack(tensor)
            except Exception as error:
                errors.append(error)
        return tensor

    with saved_tensors_hooks(keep, unpack):
        values = run()
    result = finish(values)
    if errors:
        raise errors.pop()
    return result
