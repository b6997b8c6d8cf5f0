"""OverrideState: which `__torch_function__` torch asks at the point that a capture has come to."""

from typing import Any


class OverrideState:
    """What `DisableTorchFunctionSubclass` blocks and `TorchFunctionMode`s do to the operations that are evaluated next.

    subclasses: a value of a subclass of tensors was made, so arguments have to be looked at. off: how many blocks that
    switch the subclasses off are open. modes: the values of the modes that are entered, the innermost last;
    blocks: what notes each of them as open, where the captured code has entered it.
    """

    def __init__(self) -> None:
        self.subclasses = False
        self.off = 0
        self.modes: list[Any] = []
        self.blocks: list[Any] = []

    def is_idle(self) -> bool:
        """Return whether no operation has to be handed to anybody."""
        return not (self.subclasses or self.modes)
