"""The process-wide switches of torch: grad mode, default dtype, deterministic algorithms."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class TorchSwitches:
    """The process-wide switches of torch that a program may change and not restore."""

    grad: bool
    dtype: torch.dtype
    deterministic: bool

    def __str__(self) -> str:
        """Return the switches in words."""
        grad = "on" if self.grad else "off"
        deterministic = "on" if self.deterministic else "off"
        return f"grad mode {grad}, default dtype {self.dtype}, deterministic algorithms {deterministic}"

    @classmethod
    def now(cls) -> "TorchSwitches":
        """Record the present switches."""
        deterministic = torch.are_deterministic_algorithms_enabled()
        return cls(torch.is_grad_enabled(), torch.get_default_dtype(), deterministic)

    def restore(self) -> None:
        """Restore the switches, touching only those that changed."""
        if torch.is_grad_enabled() != self.grad:
            torch.set_grad_enabled(self.grad)
        if torch.get_default_dtype() != self.dtype:
            torch.set_default_dtype(self.dtype)
        if torch.are_deterministic_algorithms_enabled() != self.deterministic:
            torch.use_deterministic_algorithms(self.deterministic)
