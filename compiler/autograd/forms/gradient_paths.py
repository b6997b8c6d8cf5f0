"""Which inputs of a graph get a gradient, and whether from each of its results.

In eager every result has a history of its own, and what is not part of it is never visited: hooks there are not called.
A compiled graph is one step of history for all results, and the engine visits everything behind it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class GradientPaths:
    """unreached: inputs, by their number, that no history leads to; uneven: others get one from some results only.

    hooked: whether the program puts hooks on inputs when the graph has run.
    """

    unreached: frozenset[int]
    uneven: bool
    hooked: bool

    def are_watched(self, inputs: Sequence[object]) -> bool:
        """Return whether an input of the call has a hook that the engine might call without a gradient."""
        if not self.uneven:
            return False
        return self.hooked or any(isinstance(value, torch.Tensor) and _has_hooks(value) for value in inputs)


def _has_hooks(tensor: torch.Tensor) -> bool:
    late: object = getattr(tensor, "_post_accumulate_grad_hooks", None)
    return bool(tensor.requires_grad and (tensor._backward_hooks or late))
