"""GuardList: what a capture demands of later calls."""

import sys

import torch

from ...base.torch_facts import (
    any_autocast_enabled,
    function_mode_depth,
    outside_transforms,
)
from ...values.guard import Guard, GuardKind
from ...values.python.objects.attributes import CAPTURED_CLASSES
from ...values.source import Injected, Source
from ...values.value import GuardDemands, Value
from .autocast import autocast_state
from .frame_stack import FrameStack


class GuardList(GuardDemands):
    """The guards of one capture, each once, in the order in which they were needed."""

    def __init__(self, frames: FrameStack) -> None:
        self.frames = frames
        self.demanded: list[Guard] = []
        self.keys: set[object] = set()
        self.hashed: dict[int, Value] = {}  # objects from outside that were told apart by identity
        self.hold_global_state()

    def add(self, source: Source | None, kind: GuardKind, expected: object, others: tuple[Source, ...] = ()) -> None:
        """Demand a condition at entry, once; identities of injected objects hold by construction."""
        if isinstance(source, Injected) and _holds_by_construction(source.value, kind):
            return
        if CAPTURED_CLASSES and source is not None and _of_captured_class(source):
            return
        guard = Guard(source, kind, expected, self.frames.user_line(), others)
        key = (guard.key(), others)
        if key not in self.keys:
            self.keys.add(key)
            self.demanded.append(guard)

    def hold_global_state(self) -> None:
        """Hold the global state of torch that captured code may read or that changes what operations do."""
        for function in (
            torch.is_grad_enabled,
            torch.is_inference_mode_enabled,
            torch.get_default_dtype,
            any_autocast_enabled,
            function_mode_depth,
            torch.are_deterministic_algorithms_enabled,
        ):
            self.add(None, GuardKind.STATE, (function, function()))
        self.add(None, GuardKind.STATE, (outside_transforms, True))
        if function_mode_depth():
            self.add(None, GuardKind.STATE, (torch.get_default_device, torch.get_default_device()))
        if any_autocast_enabled():
            self.add(None, GuardKind.STATE, (autocast_state, autocast_state()))

    def told_apart(self, value: Value) -> None:
        """Note an object from outside whose identity the program relies on."""
        if value.source is not None:
            self.hashed[id(value)] = value


def _of_captured_class(source: Source) -> bool:
    """Return whether something is read from the template of a class that the program makes: it is new in every call."""
    base: Source | None = source
    while base is not None and not isinstance(base, Injected):
        base = base.base()
    return base is not None and isinstance(base.value, type) and base.value in CAPTURED_CLASSES


def _holds_by_construction(value: object, kind: GuardKind) -> bool:
    """Return whether a condition on an injected object can never change."""
    if kind is GuardKind.CODE:  # a user may replace the code of a function; torch and the standard library do not
        root = str(getattr(value, "__module__", "")).partition(".")[0]
        return root == "torch" or (root in sys.stdlib_module_names and root != "__main__")
    return kind in (GuardKind.TYPE, GuardKind.IDENTITY) or (kind is GuardKind.LENGTH and isinstance(value, tuple))
