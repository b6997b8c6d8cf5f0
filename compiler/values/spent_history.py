"""Results whose history a captured backward has used up: they require grad, and refuse a backward as in eager."""

from typing import Any
from weakref import WeakSet

import torch
from torch import fx

WALKED: WeakSet[fx.Graph] = WeakSet()  # graphs in which the autograd engine runs


def refusal_of(fake: torch.Tensor) -> str | None:
    """Return what the engine says to a backward through a fake tensor, None if it can still go."""
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
    inputs, seed = list(leaves.values()), torch.ones_like(fake)
    try:
        torch.autograd.grad([fake], inputs, [seed], retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        return str(error)
    return None


class _Spent(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, anchor: torch.Tensor, words: str) -> torch.Tensor:
        ctx.words = words
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        raise RuntimeError(ctx.words)


def with_spent_history(tensor: torch.Tensor, words: str) -> torch.Tensor:
    """Return the tensor as one that requires grad and whose backward raises RuntimeError."""
    with torch.enable_grad():
        made: torch.Tensor = _Spent.apply(tensor.detach(), torch.zeros((), requires_grad=True), words)  # type: ignore[no-untyped-call]  # torch's own
    return made
