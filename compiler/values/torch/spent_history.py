"""Results whose history is of no use any more: they require grad, and refuse a backward as in eager.

A captured backward has used it up, or a tensor that an operation has saved was detached in place.
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakMethod

import torch
from torch import fx

from ...base.torch_facts import USED_UP, apply_function
from ..value import Value

_DETACHED = "Trying to use a saved tensor that has been detached in-place"
# Graph with the engine or such a tensor in it -> what gives its leaves, later ones too. Weak: leaves know their graph.
WALKED: WeakKeyDictionary[fx.Graph, WeakMethod[Callable[[], Sequence[Value]]]] = WeakKeyDictionary()


def known_leaves(graph: fx.Graph) -> Sequence[Value]:
    """Return the leaves of such a graph that are known by now."""
    leaves = WALKED[graph]()
    return leaves() if leaves is not None else ()


def tells_history(tensor: torch.Tensor) -> bool:
    """Return whether torch says where a tensor comes from; not of a view made under no_grad, its base written since."""
    try:
        return tensor.is_leaf or True
    except RuntimeError:
        return False


def is_gradient_leaf(fake: torch.Tensor) -> bool:
    """Return whether a tensor collects gradients."""
    return fake.requires_grad and tells_history(fake) and fake.is_leaf


def leaves_of(fake: torch.Tensor) -> list[torch.Tensor]:
    """Return the leaves that the history of a tensor leads to."""
    leaves: dict[int, torch.Tensor] = {}
    seen: set[Any] = set()
    waiting: list[Any] = [fake.grad_fn]
    while waiting:
        function = waiting.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        leaf = getattr(function, "variable", None)
        if leaf is not None:
            leaves[id(leaf)] = leaf
        waiting += [following for following, _ in function.next_functions]
    return list(leaves.values())


def refusal_of(fake: torch.Tensor) -> str | None:
    """Return what the engine says to a backward through a history that is of no use, None if it can go through it."""
    seed = torch.ones_like(fake)
    try:
        torch.autograd.grad([fake], leaves_of(fake), [seed], retain_graph=True, allow_unused=True)
    except Exception as error:  # others come of torch's rules for fakes, or the history that is kept says them itself
        return str(error) if any(words in str(error) for words in (USED_UP, _DETACHED)) else None
    return None


class _Spent(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, words: str, *leaves: torch.Tensor) -> torch.Tensor:
        ctx.words = words
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        raise RuntimeError(ctx.words)


def with_spent_history(tensor: torch.Tensor, words: str, *leaves: torch.Tensor) -> torch.Tensor:
    """Return the tensor as one that requires grad and whose backward raises RuntimeError.

    leaves: where the history led to; the engine walks only where a gradient is asked for.
    """
    anchors = [*leaves, torch.zeros((), requires_grad=True, device="cpu")]
    with torch.enable_grad():
        result: torch.Tensor = apply_function(_Spent, tensor.detach(), words, *anchors)
    return result
