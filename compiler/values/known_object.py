"""The values of objects that are wholly known while capturing, and of those that `copy` gives back as they are."""

from collections.abc import Hashable

from .value import CaptureContext, Value


class AtomicValue(Value):
    """An object that equals nothing of another kind, and that `copy.copy` and `copy.deepcopy` give back as it is."""

    equal_by_identity = True

    def shallow_copy(self, ctx: CaptureContext) -> Value:
        """Return itself."""
        return self

    def deep_copy(self, ctx: CaptureContext, memo: dict[int, Value]) -> Value:
        """Return itself."""
        return self


class KnownObject(AtomicValue):
    """One object that is wholly known; a subclass says which in `constant`."""

    def python_type(self) -> type:
        """Return the object's type."""
        return type(self.constant())

    def is_constant(self) -> bool:
        """Return True: the object itself is the constant."""
        return True

    def stand_in(self) -> object:
        """Return the object."""
        return self.constant()

    def identity(self) -> object:
        """Return the object: `is` follows the objects."""
        return self.constant()

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Return the object, whose own hash and equality are used, as a dict would."""
        return self.constant()

    def truth(self, ctx: CaptureContext) -> bool:
        """Evaluate bool of the object."""
        return bool(self.constant())

    def graph_argument(self, ctx: CaptureContext) -> tuple[object, object]:
        """Return the object for both."""
        return self.constant(), self.constant()
