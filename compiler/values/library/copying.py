"""copy.copy and copy.deepcopy: each kind of value copies itself; tensors and odd classes break."""

import copy

from ..python.containers.mappings import DictValue
from ..python.deep_copies import deep_copied
from ..reasons import COPY, Break
from ..rule_tables import calls
from ..value import Arguments, CaptureContext, Keywords, Value


@calls(copy.copy)
def _copy(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return ctx.realize(args[0]).shallow_copy(ctx)


@calls(copy.deepcopy)
def _deepcopy(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) > 1 or kwargs:
        raise Break(COPY, "deepcopy with a memo")
    return deep_copied(ctx, args[0], {0: DictValue()})
