"""Replicas beside eager in light lanes: first two of each tensor, all of them only where these leave it open."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from ..noise.lane_evaluation import LanePlan
from ..noise.light_lane import LightLane

Keep = Callable[[str | None, dict[str, Tensor]], None]
Take = Callable[[str, Tensor], None]
FollowedProgram = Callable[[LightLane, Sequence[str], Keep, Take | None], None]

FEW_REPLICAS = 2
ROOM, MOST_RUNS = 64 << 20, 6
"""Bytes that are kept in a large call for tensors that may be asked for; runs for those that were not kept."""
_AT_ONCE = 2
"""Lanes in one run of a large call, whose memory is that of eager four times a lane and more."""

Found = dict[str | None, dict[str, Tensor]]


class LightReplicas:
    """Replicas of the tensors of one call: outputs (key None) and gradients by the kind of their backward.

    together: the kinds of backward that share a run.  large: the call is, so that memory is bounded instead.
    number: of replicas in all.
    """

    def __init__(
        self, follow: FollowedProgram, together: tuple[str, ...], *, large: bool, number: int, seed: int
    ) -> None:
        self._follow = follow
        self._together = together
        self._large = large
        self._number = number
        self._seed = seed
        self._few: Found = {}
        self._all: Found = {}
        self._runs = 0

    def few(self, path: str, cotangent: str | None) -> Tensor | None:
        """Return [2, *shape], once for each tensor; None where a lane cannot be trusted, or too much was asked."""
        if self._number < FEW_REPLICAS:
            return None
        self._make(self._few, path, cotangent, 0, FEW_REPLICAS)
        return self._few.get(cotangent, {}).get(path)

    def all(self, path: str, cotangent: str | None) -> Tensor | None:
        """Return all replicas of a tensor of which there are few, [number, *shape]; None as there."""
        few = self._few.get(cotangent, {}).pop(path, None)
        if few is None:
            return None
        self._make(self._all, path, cotangent, FEW_REPLICAS, self._number)
        rest = self._all.get(cotangent, {}).pop(path, None)
        return None if rest is None else torch.cat([few, rest])

    def _make(self, found: Found, path: str, cotangent: str | None, first: int, last: int) -> None:
        """Run for a tensor that is not in `found`, unless it was asked for before, or for too many.

        Most calls need replicas for one backward, if for any; where a second one does, others will.
        """
        if path in found.get(cotangent, {}) or (not self._large and cotangent in found):
            return
        if self._large:
            if self._runs >= MOST_RUNS:
                return
            found.clear()
            self._runs += 1
        wanted: tuple[str, ...] = () if cotangent is None else (cotangent,)
        together = () if self._large or found is not self._few else self._together
        if cotangent in together and any(key in found for key in together):
            wanted = tuple(key for key in together[together.index(cotangent) :] if key not in found)
        step = _AT_ONCE if self._large else last - first
        parts: list[Found] = []
        for start in range(first, last, step):
            plan = LanePlan(0, min(step, last - start), 0, 0)
            parts.append(self._run(LightLane(plan, self._seed + start), path, cotangent, wanted))
        for key in parts[0]:
            common = [which for which in parts[0][key] if all(which in part[key] for part in parts)]
            found[key] = {which: torch.cat([part[key][which] for part in parts]) for which in common}

    def _run(self, lane: LightLane, path: str, cotangent: str | None, wanted: Sequence[str]) -> Found:
        found: Found = {key: {} for key in wanted or (None,)}
        room = ROOM

        def hold(key: str | None, which: str, tensor: Tensor) -> None:
            nonlocal room
            rows = lane.rows_of(tensor)
            if rows is None or (self._large and which != path and rows.nbytes > room):
                return
            room -= rows.nbytes
            found[key][which] = rows.clone()  # a later backward may need the lanes of what this one has returned

        def keep(key: str | None, tensors: dict[str, Tensor]) -> None:
            for which, tensor in tensors.items() if key in found else ():
                hold(key, which, tensor)

        self._follow(lane, wanted, keep, partial(hold, cotangent) if self._large else None)
        if lane.untrusted or lane.unstable_control_flow:
            return {key: {} for key in found}
        return found
