"""The random generators a program may draw from: torch (CPU and initialised CUDA devices), NumPy, Python."""

import random
from dataclasses import dataclass
from typing import Any

import numpy
import torch


@dataclass(frozen=True, slots=True, eq=False)
class RandomState:
    """The states of all generators at one moment; `restore` sets them back."""

    torch_cpu: torch.Tensor
    torch_cuda: tuple[torch.Tensor, ...]
    numpy_global: tuple[Any, ...]
    python: tuple[Any, ...]

    @classmethod
    def now(cls) -> "RandomState":
        """Record the present states; touches no device that is not initialised."""
        initialised = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        cuda = tuple(torch.cuda.get_rng_state_all()) if initialised else ()
        numpy_state = numpy.random.get_state(legacy=True)
        return cls(torch.get_rng_state(), cuda, tuple(numpy_state), random.getstate())

    def restore(self) -> None:
        """Set every generator back to this state."""
        torch.set_rng_state(self.torch_cpu)
        if self.torch_cuda:
            torch.cuda.set_rng_state_all(list(self.torch_cuda))
        numpy.random.set_state(self.numpy_global)
        random.setstate(self.python)

    def differences(self, other: "RandomState") -> list[str]:
        """Return the names of the generators whose state differs in `other`."""
        names = []
        if not torch.equal(self.torch_cpu, other.torch_cpu):
            names.append("torch's CPU generator")
        same_length = len(self.torch_cuda) == len(other.torch_cuda)
        if not same_length or not all(map(torch.equal, self.torch_cuda, other.torch_cuda)):
            names.append("torch's CUDA generators")
        pairs = zip(self.numpy_global, other.numpy_global, strict=True)
        if not all(numpy.array_equal(before, after) for before, after in pairs):
            names.append("NumPy's global generator")
        if self.python != other.python:
            names.append("Python's random module")
        return names


def seed_everything(seed: int) -> None:
    """Seed torch, NumPy and Python; seed: any non-negative int."""
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:  # torch.manual_seed would queue work for devices that do not exist, at 0.07 ms a call
        torch.default_generator.manual_seed(seed)
    numpy.random.seed(seed % 2**32)
    random.seed(seed)
