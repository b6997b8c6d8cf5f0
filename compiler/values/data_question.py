"""DataQuestion: truth values that a few operations on the data of inputs give, asked before the compiled code runs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, eq=False)
class DataQuestion:
    """What computing on copies of some inputs gives.

    function: gives a tuple of tensors of one element. copied: for each input, whether the function writes to it.
    expected: the numbers or truth values that were found. words: what is asked, and where, for people.
    """

    function: Callable[..., tuple[torch.Tensor, ...]]
    copied: tuple[bool, ...]
    expected: tuple[object, ...]
    words: str

    def answers(self, *inputs: Any) -> tuple[object, ...]:
        """Return the numbers that there are now; the inputs stay as they are."""
        with torch.no_grad():
            given = [x.detach().clone() if copy else x.detach() for x, copy in zip(inputs, self.copied, strict=True)]
            return tuple(answer.item() for answer in self.function(*given))

    def found(self, *inputs: Any) -> str:
        """Return the numbers that there are now, for people."""
        try:
            return ", ".join(map(str, self.answers(*inputs)))
        except Exception as error:
            return type(error).__name__

    def number(self, *inputs: Any) -> object:
        """Return the first number."""
        return self.answers(*inputs)[0]

    def holds(self, *inputs: Any) -> bool:
        """Return whether the answers are the expected ones; what raises now has no answer."""
        try:
            return all(map(_is_same, self.answers(*inputs), self.expected))
        except Exception:
            return False


def _is_same(number: object, expected: object) -> bool:
    return number == expected and (bool(number) or repr(number) == repr(expected))
