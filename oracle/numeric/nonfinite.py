"""The decision on NaN and Inf: where a compiled tensor may hold them, and where it may not."""

import torch
from torch import Tensor

from ..noise.lanes import Lanes
from ..verdict import VerdictKind
from .element_places import first_place, positions, shown
from .value_decision import Need, OpenDecision, ValueDecision


def judge_nonfinite(actual: Tensor, eager: Tensor, lanes: Lanes | None) -> OpenDecision | None:
    """Judge the positions of NaN and Inf among floats; None where they are right, or where lanes themselves disagree.

    With the `exact` lane alone nothing is wrong yet: replicas tell where lanes disagree.
    """
    exact = lanes.exact if lanes is not None else None
    replicas = lanes.replicas if lanes is not None else None
    if exact is not None and replicas is not None:
        difference = _unstable_nonfinite_difference(actual, eager, exact, replicas)
    else:
        difference = _nonfinite_difference(actual, eager, exact)
    if difference is not None and exact is not None and replicas is None:
        return ValueDecision(Need.REPLICAS, None, "non-finite in other positions than eager")
    return None if difference is None else ValueDecision(VerdictKind.WRONG, None, difference)


def _nonfinite_difference(actual: Tensor, eager: Tensor, exact: Tensor | None) -> str | None:
    """Return what is wrong with NaN and Inf positions, None when they are right.

    Not finite is right only where eager is, or where the exact value rounds to the same Inf.
    A finite value where eager is not finite is right only when the exact value is finite (then the element
    statistic judges it).
    """
    if exact is None:
        exact = eager.double()
    rounded = exact.to(eager.dtype)
    bad = ~torch.isfinite(actual)
    same = (actual == eager) | ((actual != actual) & (eager != eager))
    justified = (actual == rounded) | ((actual != actual) & (exact != exact))
    wrong = bad & ~same & ~justified
    if bool(wrong.any()):
        at = first_place(wrong)
        return f"{shown(actual[at])} at {list(at)}, eager has {shown(eager[at])} (at {positions(int(wrong.sum()))})"
    missing = ~bad & ~torch.isfinite(eager) & ~torch.isfinite(exact)
    if bool(missing.any()):
        at = first_place(missing)
        return f"{shown(actual[at])} at {list(at)}, eager has {shown(eager[at])} (at {positions(int(missing.sum()))})"
    return None


def _unstable_nonfinite_difference(actual: Tensor, eager: Tensor, exact: Tensor, replicas: Tensor) -> str | None:
    """Return what is wrong with NaN and Inf positions, passing over those where lanes themselves disagree."""
    finite = torch.isfinite(replicas).sum(0)
    open_ = (finite != 0) & (finite != replicas.shape[0]) | ((finite == 0) & torch.isfinite(exact))
    signs = torch.isinf(replicas).all(0) & (replicas > 0).any(0) & (replicas < 0).any(0)
    if bool(signs.any()):  # 1 / 0 where the sign of 0 is open
        actual, eager, exact = (torch.where(signs, each.abs(), each) for each in (actual, eager, exact))
    if not bool(open_.any()):
        return _nonfinite_difference(actual, eager, exact)
    keep = ~open_
    zero = torch.zeros_like(eager)
    return _nonfinite_difference(
        torch.where(keep, actual, zero), torch.where(keep, eager, zero), torch.where(keep, exact, zero.double())
    )
