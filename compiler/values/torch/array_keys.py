"""Arrays of NumPy's in the subscript of a tensor: torch makes a tensor of each."""

from ..python.containers.tuples import TupleValue
from ..value import CaptureContext, Value


class ArrayKey(Value):
    """An array, as a subscript sees it."""

    def index_tensor(self, ctx: CaptureContext, *, alone: bool) -> Value:
        """Return the tensor that torch makes of this array; the array itself where a graph is not to carry it.

        alone: it is the whole subscript, which torch takes for a tuple of its rows where it has several dimensions.
        """
        del ctx, alone
        return self


def with_index_tensors(ctx: CaptureContext, key: Value) -> Value:
    """Return a subscript with tensors in place of arrays."""
    key = ctx.realize(key)
    if isinstance(key, ArrayKey):
        return key.index_tensor(ctx, alone=True)
    if not isinstance(key, TupleValue) or key.kind is not tuple:
        return key
    parts = [ctx.realize(part) for part in key.elements(ctx)]
    if not any(isinstance(part, ArrayKey) for part in parts):
        return key
    return TupleValue([part.index_tensor(ctx, alone=False) if isinstance(part, ArrayKey) else part for part in parts])
