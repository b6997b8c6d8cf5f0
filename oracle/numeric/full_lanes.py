"""Lanes of whole shadow runs, which miss no write: by depth, for the tensors that light lanes leave open."""

from collections.abc import Callable, Iterator, Sequence

from torch import Tensor

from ..judge_options import JudgeOptions
from ..noise.lanes import Lanes
from ..noise.plain_form import plain_form
from ..noise.shadow import ShadowRun
from .light_replicas import FEW_REPLICAS, Keep

ShadowProgram = Callable[[ShadowRun, Sequence[str | None], Keep], None]

ROUNDED_LANES = 4
DEPTHS = ("exact", "few", "replicas", "rounded")
"""The float64 value; with few replicas; with all; and lanes that round every result, with as many of wide noise."""
ROOM, MOST_ASKED = 192 << 20, 6
"""Bytes of lanes kept in a large call for tensors that may be asked for; how often others are run for."""
FURTHER_RUNS, FURTHER_LANES, FURTHER_SEED = 7, 8, 1 << 16
"""Runs for a second opinion, lanes of each, and what their seeds are apart from those of before."""
_AT_ONCE = 2
"""Lanes that run together in a large call: memory is that of eager, once more, and twice a lane."""


class FullLanes:
    """The lanes of the tensors of one call, from as few runs as the tensors that ask need.

    run: of eager, under a shadow run.  restore: rewinds after it.  together: the kinds of backward that may be run on
    one graph.  large: memory is bounded instead.  reasons: why lanes cannot be trusted.
    """

    def __init__(
        self,
        run: ShadowProgram,
        restore: Callable[[], None],
        together: tuple[str, ...],
        options: JudgeOptions,
        *,
        large: bool,
    ) -> None:
        self._run = run
        self._restore = restore
        self._together = together
        self._options = options
        self._large = large
        self._asked = 0
        self._made: dict[tuple[str, str | None], dict[str, Lanes]] = {}
        self._eager: dict[str | None, dict[str, Tensor]] = {}
        self.reasons: list[str] = []

    def at(
        self, depth: str, path: str, cotangent: str | None, *, may_run: bool, for_all: bool
    ) -> tuple[Lanes, Tensor] | None:
        """Return the lanes of a tensor and what eager made of it beside them; None where there are none.

        may_run: the state that runs start from is still there.  for_all: run for all backwards that share a graph.
        """
        made = self._made.get((depth, cotangent))
        again = self._large and self._asked < MOST_ASKED
        if may_run and (made is None or (again and path not in made)):
            self._make(depth, path, cotangent, for_all=for_all)
        lanes = self._made.get((depth, cotangent), {}).get(path)
        return None if lanes is None else (lanes, self._eager[cotangent][path])

    def further(self, path: str, cotangent: str | None, *, stepped: bool) -> Iterator[Tensor]:
        """Yield more lanes of a tensor, [n, *shape]: replicas with other noise, or lanes that step to neighbours."""
        for number in range(FURTHER_RUNS):
            replicas, rounded = (0, FURTHER_LANES) if stepped else (FURTHER_LANES, 0)
            seed = self._options.seed + FURTHER_SEED + number
            shadow = ShadowRun(exact=False, replicas=replicas, rounded=rounded, stepped=stepped, seed=seed)
            yield from self._rows_of(shadow, path, cotangent)

    def _rows_of(self, shadow: ShadowRun, path: str, cotangent: str | None) -> list[Tensor]:
        """Run lanes for one tensor, and return those of it."""
        found: list[Tensor] = []

        def keep(key: str | None, tensors: dict[str, Tensor]) -> None:
            if key == cotangent and path in tensors:
                lanes = shadow.lanes_of(tensors[path])
                found.extend(rows for rows in (lanes.replicas, lanes.rounded) if rows is not None)

        self._run(shadow, (cotangent,), keep)
        self._restore()
        return found

    def _make(self, depth: str, path: str, cotangent: str | None, *, for_all: bool) -> None:
        """Run the lanes of one depth: for one backward, then for all others that may share a graph.

        Most calls need them for one; where a second one does, or something is wrong, others will.
        """
        together = self._together
        wanted: tuple[str | None, ...] = (cotangent,)
        if cotangent in together and (for_all or any((depth, key) in self._made for key in together)):
            others = together[together.index(cotangent) :]
            wanted = tuple(key for key in others if depth != "rounded" or ("replicas", key) in self._made)
        self._asked += 1
        for key in wanted:
            self._made[depth, key] = {}
            self._eager.setdefault(key, {})  # lanes of another depth may still be asked for
        for number, shadow in enumerate(self._parts(depth)):
            self._run(shadow, wanted, self._keeper(shadow, depth, path, first=not number))
            self.reasons.extend(reason for reason in shadow.untrusted[:3] if reason not in self.reasons)
            self._restore()
        if depth == "rounded":
            for key in wanted:
                earlier = self._made.get(("replicas", key), {})
                self._made[depth, key] = {
                    which: lanes.beside(earlier[which]) if which in earlier else lanes
                    for which, lanes in self._made[depth, key].items()
                }

    def _keeper(self, shadow: ShadowRun, depth: str, path: str, *, first: bool) -> Keep:
        """Return what keeps the lanes of one run beside those of the runs before it."""
        room = ROOM

        def keep(key: str | None, tensors: dict[str, Tensor]) -> None:
            nonlocal room
            made, eager = self._made[depth, key], self._eager[key]
            for which, tensor in tensors.items():
                if not first and which not in made:
                    continue
                if first and self._large and which != path:
                    size = 8 * tensor.numel() * (1 + self._options.replicas)
                    if size > room:
                        continue
                    room -= size
                lanes = shadow.lanes_of(tensor)
                made[which] = lanes if first else made[which].beside(lanes)
                if first:
                    eager[which] = plain_form(tensor).clone()

        return keep

    def _parts(self, depth: str) -> Iterator[ShadowRun]:
        """Yield the runs of one depth: one with all lanes, or many with few where the call is large."""
        seed, replicas = self._options.seed, self._options.replicas
        number = {"exact": 0, "few": min(FEW_REPLICAS, replicas), "rounded": 0}.get(depth, replicas)
        rounded = ROUNDED_LANES if depth == "rounded" else 0
        if not self._large:
            yield ShadowRun(exact=True, replicas=number, rounded=rounded, seed=seed + rounded)
            return
        yield ShadowRun(exact=True, replicas=min(number, _AT_ONCE - 1), seed=seed)
        for start in range(_AT_ONCE - 1, number, _AT_ONCE):
            yield ShadowRun(exact=False, replicas=min(_AT_ONCE, number - start), seed=seed + start)
        for lane in range(rounded):
            yield ShadowRun(exact=False, rounded=1, seed=seed + rounded + lane)
