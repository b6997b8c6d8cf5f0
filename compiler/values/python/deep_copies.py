"""Copies of values that `copy.deepcopy` makes: each value once, whatever refers to it."""

from ..value import CaptureContext, Value


def deep_copied(ctx: CaptureContext, value: Value, memo: dict[int, Value]) -> Value:
    """Return the copy of a value that `copy.deepcopy` makes: the one of the memo if it was met before."""
    value = ctx.realize(value)
    if id(value) not in memo:
        copied = value.deep_copy(ctx, memo)
        memo.setdefault(id(value), copied)
        memo[~id(value)] = value  # which keeps its number its own
    return memo[id(value)]
