"""Planted faults of capture: a call that is recorded as another one, and guards that are left out.

For tests of tests, like `replace_lowering`; both hold inside a block, for what is compiled there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from ..base.errors import UserError
from ..base.seam import planting
from ..values.guard import GuardKind
from ..values.source import Source
from ..values.value import Arguments, Keywords, Value
from .context.graph_builder import GraphBuilder
from .context.guard_list import GuardList


@contextmanager
def replace_captured(function: object, other: object) -> Iterator[None]:
    """Record calls of one function of torch as calls of another that takes the same arguments.

    function, other: as they stand in the graph: `torch.relu`, or the name of a method of tensors as text.
    """
    stock = GraphBuilder.call

    def wrong(self: GraphBuilder, kind: str, target: object, args: Arguments, kwargs: Keywords) -> Value:
        if target is function or (isinstance(target, str) and target == function):
            kind, target = ("call_method" if isinstance(other, str) else "call_function"), other
        return stock(self, kind, target, args, kwargs)

    with planting(), mock.patch.object(GraphBuilder, "call", wrong):
        yield


@contextmanager
def ignore_guards(*kinds: str) -> Iterator[None]:
    """Leave out guards of these kinds, `EQUALS` for example: what was compiled once is used where it should not be.

    Raises UserError for a kind that there is not.
    """
    unknown = [kind for kind in kinds if kind not in GuardKind.__members__]
    if unknown:
        raise UserError(f"no kind of guard is named {unknown[0]!r}", hint=f"one of: {', '.join(GuardKind.__members__)}")
    stock = GuardList.add

    def forgetful(
        self: GuardList, source: Source | None, kind: GuardKind, expected: object, others: tuple[Source, ...] = ()
    ) -> None:
        if kind.name not in kinds:
            stock(self, source, kind, expected, others)

    with planting(), mock.patch.object(GuardList, "add", forgetful):
        yield
