"""The state of torch's optimizers, which their first step makes: made before capture, so all steps are one graph."""

import types
from contextlib import suppress
from typing import Any

import torch

from ..python.containers.lists import ListValue
from ..python.objects.instances import ObjectValue
from ..reasons import Signal
from ..value import Arguments, CaptureContext, Keywords


class UnstartedOptimizer(Signal):
    """A step is about to make the state of a group of parameters, and the program has done nothing else so far."""

    def __init__(self, optimizer: torch.optim.Optimizer, group: dict[str, Any], lists: int) -> None:
        self.optimizer = optimizer
        self.group = group
        self.lists = lists
        super().__init__(optimizer)

    def initialise(self) -> bool:
        """Make it as the step does, and return whether it is made; where that raises, the step itself raises, too."""
        optimizer: Any = self.optimizer
        with suppress(Exception), torch.no_grad():
            optimizer._init_group(self.group, *([] for _ in range(self.lists)))
        return not _waits(self.optimizer, self.group)


def demand_state(ctx: CaptureContext, function: object, args: Arguments, kwargs: Keywords) -> None:
    """Raise UnstartedOptimizer if a function is the one that makes the state of a group, and there is some to make."""
    if not _makes_state(function) or len(args) < 3 or kwargs or not ctx.graph.may_start():
        return
    owner = ctx.realize(args[0])
    optimizer = owner.real if isinstance(owner, ObjectValue) else None
    lists = [ctx.realize(arg) for arg in args[2:]]
    empty = all(isinstance(value, ListValue) and value.kind is list and not value.items for value in lists)
    if not isinstance(optimizer, torch.optim.Optimizer) or not empty:
        return
    group = next((group for group in optimizer.param_groups if _waits(optimizer, group)), None)
    if group is not None:
        raise UnstartedOptimizer(optimizer, group, len(lists))


def _makes_state(function: object) -> bool:
    """Return whether a function is the `_init_group` of one of torch's optimizers."""
    if not isinstance(function, types.FunctionType) or function.__name__ != "_init_group":
        return False
    return function.__module__.startswith("torch.optim.")


def _waits(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> bool:
    """Return whether a parameter of the group has a gradient and no state yet."""
    with_gradients = [parameter for parameter in group["params"] if parameter.grad is not None]
    return any(not optimizer.state.get(parameter) for parameter in with_gradients)
