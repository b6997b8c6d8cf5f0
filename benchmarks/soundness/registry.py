"""Programs of our own, registered by decorator; each is played in float32 and in bfloat16."""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from .playing import Call, SoundProgram, in_dtypes

Play = Callable[[Call], Any]


class Registry:
    """The programs of one file, by name."""

    def __init__(self) -> None:
        self.plays: dict[str, Play] = {}

    def __call__(self, play: Play) -> Play:
        """Register a program under the name of its function."""
        assert play.__name__ not in self.plays, play.__name__
        self.plays[play.__name__] = play
        return play

    def programs(self, name: str) -> Iterator[SoundProgram]:
        """Yield a program in each dtype."""
        yield from in_dtypes(name, self.plays[name])


def inputs(*shape: int) -> torch.Tensor:
    """Return drawn numbers of a shape, [2, 4] without one, in the default dtype."""
    return torch.randn(shape or (2, 4))


def gradients(*modules: torch.nn.Module) -> list[torch.Tensor | None]:
    """Return the gradients of all parameters."""
    return [parameter.grad for module in modules for parameter in module.parameters()]
