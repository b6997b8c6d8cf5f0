"""The decision on one tensor: how far the compiled value is from float64, in units of the program's own noise.

Three statistics decide: the worst element, the root mean square, and the mean over every slice of every dimension
(systematic errors far below one ulp, a wrong row, a dropped tail).  Nothing here is tuned to a program or an operator.
"""

from torch import Tensor

from ..noise.lanes import Lanes
from ..verdict import VerdictKind
from .bits import as_reals, same_values, zero_sign_differences
from .discrete_values import judge_discrete
from .element_places import positions
from .float_values import judge_by_exact, judge_by_replicas
from .nonfinite import judge_nonfinite
from .value_decision import OpenDecision, ValueDecision
from .without_reference import judge_without_reference


def judge_values(actual: Tensor, eager: Tensor, lanes: Lanes | None) -> OpenDecision:
    """Judge a compiled tensor against eager's and its lanes; shapes and dtypes are equal.

    Without lanes: EQUAL when the bits are, else the best answer there is (NO_REFERENCE or WRONG).
    With the `exact` lane only: accepted when no worse than correct rounding or eager, else `Need.REPLICAS`.
    With replicas: the full decision, or `Need.ROUNDED` when rounding decides too much or a jump must be told from
    an error; that run has replicas and rounded lanes.
    Signs of zero and payloads of NaN never decide; `zero_sign_differences` counts the former.
    """
    small = eager.is_floating_point() and eager.itemsize == 1
    stored, actual, eager = (actual, eager), as_reals(actual), as_reals(eager)
    signs = zero_sign_differences(actual, eager)
    if same_values(actual, eager):
        if signs:
            return ValueDecision(VerdictKind.NOISE, None, f"equal but for the sign of zero at {positions(signs)}")
        return ValueDecision(VerdictKind.EQUAL, None, "bitwise equal")
    if small:  # the lanes know nothing of roundings to eight bits
        return judge_without_reference(*stored)
    lanes = None if lanes is None else _real_lanes(lanes)
    if not actual.is_floating_point():
        return judge_discrete(actual, eager, lanes)
    nonfinite = judge_nonfinite(actual, eager, lanes)
    if nonfinite is not None:
        return nonfinite
    if lanes is None or lanes.exact is None:
        return judge_without_reference(actual, eager)
    if lanes.replicas is None:
        return judge_by_exact(actual, eager, lanes.exact)
    return judge_by_replicas(actual, eager, lanes)


def _real_lanes(lanes: Lanes) -> Lanes:
    def pairs(value: Tensor | None) -> Tensor | None:
        return None if value is None else as_reals(value)

    return Lanes(pairs(lanes.exact), pairs(lanes.replicas), pairs(lanes.rounded), pairs(lanes.wide), lanes.known)
