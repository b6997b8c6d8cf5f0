"""CaptureAttempt: what one evaluation of a unit is told before it begins."""

from dataclasses import dataclass

from ...values.source import Source
from .sizes import SymbolicDimensions, no_symbols


@dataclass(frozen=True, slots=True)
class CaptureAttempt:
    """stop_at: number of the step to stop before, -1 for none. graph_free: nothing becomes part of a graph.

    may_assume: whether branches to an error may be assumed not to be taken. may_ask: whether
    what decides a branch may be computed at entry. may_start: whether optimizers' state is made before
    capture. whole: no break is allowed. all_finite: whether NumPy's arithmetic may be assumed to give finite numbers
    alone. symbolic,
    varying_numbers: which sizes and numbers of inputs are dynamic.
    """

    stop_at: int = -1
    graph_free: bool = False
    may_assume: bool = True
    may_ask: bool = True
    may_start: bool = True
    whole: bool = False
    all_finite: bool = True
    symbolic: SymbolicDimensions = no_symbols
    varying_numbers: frozenset[Source] = frozenset()
