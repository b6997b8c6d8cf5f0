"""A program's own run, recorded: every operator with its operands and results, computed and exact.

Beside each operator two more evaluations in float64: on exact operands, which gives the exact results, and on the
operands that the program has, whose distance from the program's result is what the operator rounds.
"""

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from plumbline.compiler.base.torch_facts import negative_view, storage_is_gone, storage_key

from ..noise.draws import PURE, substitute
from ..noise.lane_evaluation import LaneCall, plain
from ..noise.monte_carlo import map_tensors, tensors_in
from ..noise.operator_facts import OperatorFacts
from ..noise.scalar_rounding import decide_scalars, needs_decision
from ..noise.shadow import FollowedCall, ShadowRun, has_no_memory, is_plain, widened
from ..noise.shadow_memory import wide_dtype
from .user_sites import SiteFinder, UserSite
from .value_pairs import PairStorage, StoragePlace

_SWEEP = 256
_MADE = frozenset({"arange", "linspace", "logspace"})  # without operands, and rounding all the same
_HOLE = torch.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class ReadTensor:
    """A tensor that an operator reads: where it is, what the program has there, and the exact numbers.

    storage: None for memory that no operator has written: it is exact.
    """

    storage: PairStorage | None
    place: StoragePlace
    computed: Tensor
    exact: Tensor

    @property
    def is_exact(self) -> bool:
        """Return whether the program has the exact numbers here."""
        return self.exact is self.computed

    @property
    def has_floats(self) -> bool:
        """Return whether an error of this operand can be small."""
        return self.exact.is_floating_point() or self.exact.is_complex()


@dataclass(frozen=True, slots=True, eq=False)
class WrittenTensor:
    """A tensor that an operator wrote; rounding: computed minus float64 on the same operands, None where that is zero.

    relative, carried, rounded: norms of the whole error, of what comes from the operands, and of the rounding, relative
    to the norm of the exact result.
    """

    storage: PairStorage
    place: StoragePlace
    computed: Tensor
    exact: Tensor
    rounding: Tensor | None
    relative: float
    carried: float
    rounded: float

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype that the program has here."""
        return self.place.dtype


@dataclass(frozen=True, slots=True, eq=False)
class RecordedCall:
    """One operator call on the tape.

    call: its arguments, with holes for tensors.  draw: what eager drew, for random operators.
    before: the largest relative error of its operands.  overflows: finite in exact arithmetic, and not as computed.
    """

    site: UserSite
    call: LaneCall
    operands: tuple[ReadTensor, ...]
    outcomes: tuple[WrittenTensor | None, ...]
    draw: tuple[Tensor, ...] | None
    before: float
    overflows: int

    def replay(self, values: list[Tensor]) -> list[Tensor]:
        """Return the results in wide arithmetic for other operands; raises what the operator raises."""
        return replayed(self.call, values, self.draw, [operand.computed for operand in self.operands])

    def replay_smaller(self, values: list[Tensor]) -> list[Tensor]:
        """Return the same by the smaller operators that this one is made of."""
        facts = replace(self.call.facts, replacement=self.call.facts.decomposition)
        return replayed(replace(self.call, facts=facts), values, None, values)


def _filled(tree: Any, values: list[Tensor]) -> tuple[Any, Any]:
    rest = iter(values)
    args, kwargs = tree
    return map_tensors(args, lambda _: next(rest)), map_tensors(kwargs, lambda _: next(rest))


def replayed(
    call: LaneCall, values: list[Tensor], draw: tuple[Tensor, ...] | None, computed: list[Tensor]
) -> list[Tensor]:
    """Return the results of a call whose tensors are `values`; draw: eager's results, if it drew them at random."""
    args, kwargs = _filled((call.args, call.kwargs), values)
    if draw is None:
        return plain(call, args, kwargs)
    if call.facts.name == "nextafter":
        return [values[0] + difference(draw[0], computed[0])]
    real_args, _ = _filled((call.args, call.kwargs), computed)
    drawn = substitute(call.facts.name, args, real_args, list(draw), written=bool(call.facts.written))
    if drawn is None:
        raise LookupError("its draw cannot be repeated")
    return drawn


class RecordedRun(ShadowRun):
    """Follow eager code and keep a tape: `with RecordedRun() as run: y = f(x)`, then `run.pair_of(y)`.

    tape: every operator that computes, in order.  untrusted: what could not be followed; eager's numbers count as exact
    from there.  The tape keeps all operands and results: about five times the memory of the program's intermediates.
    """

    def __init__(self) -> None:
        super().__init__(exact=True)
        self.tape: list[RecordedCall] = []
        self._pairs: dict[int, PairStorage] = {}
        self._new = 0
        self._sites = SiteFinder()

    def aside(self) -> AbstractContextManager[None]:
        """Return a context for work on the tape: no warnings, no modes of the user's, no gradients, wide by default."""
        return self._apart()

    def pair_of(self, tensor: Tensor) -> tuple[PairStorage | None, StoragePlace, Tensor, Tensor]:
        """Return the storage of a tensor, its place there, and its computed and exact numbers."""
        with self._apart():
            operand = self._operand(tensor)
        return operand.storage, operand.place, operand.computed, operand.exact

    def _prepare(self, call: FollowedCall) -> Any:
        if not all(map(is_plain, call.tensors)):
            return None
        return tuple(self._operand(tensor) for tensor in call.tensors)

    def _operand(self, tensor: Tensor) -> ReadTensor:
        place, wide = StoragePlace.of(tensor), wide_dtype(tensor.dtype)
        tensor = _stored(tensor.detach())
        if has_no_memory(tensor):
            zeros = torch.zeros(tensor.shape, dtype=wide)
            return ReadTensor(None, place, zeros, zeros)
        storage = self._found(tensor)
        views = storage.views(place) if storage is not None else None
        if storage is not None and views is not None:
            computed, exact = views
            if not _same(tensor, place.meant(computed)):  # written by something that is no operator
                now = place.meant(tensor.to(wide, copy=True))
                changed = (now != computed) & ~((now != now) & (computed != computed))
                storage.write(place, now, torch.where(changed, now, exact))
                views = storage.views(place)
                assert views is not None
            return ReadTensor(storage, place, *views)
        value = place.meant(tensor.to(wide, copy=True))
        return ReadTensor(None, place, value, value)

    def _found(self, tensor: Tensor) -> PairStorage | None:
        storage = self._pairs.get(storage_key(tensor))
        return storage if storage is not None and storage.size_bytes == tensor.untyped_storage().nbytes() else None

    def _follow(self, call: FollowedCall, before: Any, result: Any) -> None:
        func, facts, args, kwargs = call.operator, call.facts, call.args, call.kwargs
        site, results = self._sites.site(), tensors_in(result)
        if before is None or not all(map(is_plain, results)):
            self._distrust(f"{func}: a sparse, quantised or opaque tensor")
            self._take(t for t in [*results, *call.written()] if is_plain(t))
            return
        outputs = self._outputs(call, results)
        if not outputs:
            if not results and facts.name == "_local_scalar_dense" and not before[0].is_exact:
                self._distrust(f"a number is read from a tensor at line {site.line} and counts as exact from there")
            return
        rounds = not (facts.fixed or facts.moving or facts.jumping or facts.converting)
        if rounds and any(t.dtype in (torch.float64, torch.complex128) for t in outputs):
            self._distrust("operators in float64 count as exact")
        random = facts.draws(args, kwargs) or facts.name == "nextafter"  # which takes eager's step as a draw
        exact_already = (
            (facts.fixed and facts.name != "nextafter")
            or (not call.tensors and facts.name not in _MADE)
            or (random and facts.name in PURE)
        )
        if exact_already and not (random and facts.name == "normal"):
            if facts.name.startswith("resize") and not before[0].is_exact:
                self._distrust(f"{func}: what the memory held before counts as exact")
            self._take(outputs)
            return
        if facts.foreign:
            self._distrust(f"{func}: a custom operator has no float64 form that is known")
            self._take(outputs)
            return
        try:
            self._record(site, call, before, outputs, random=random)
        except Exception as error:  # whatever a kernel raises in float64: the program itself goes on
            reason = str(error).splitlines()[:1]
            self._distrust(f"{func}: {type(error).__name__} in float64: {reason}")
            self._take(outputs)

    def _record(
        self,
        site: UserSite,
        observed: FollowedCall,
        operands: tuple[ReadTensor, ...],
        outputs: list[Tensor],
        *,
        random: bool,
    ) -> None:
        func, facts, args, kwargs = observed.operator, observed.facts, observed.args, observed.kwargs
        computed = [StoragePlace.of(t).meant(_stored(t.detach()).to(wide_dtype(t.dtype), copy=True)) for t in outputs]
        draw = tuple(computed) if random else None
        floats = [t.dtype for t in (*observed.tensors, *outputs) if t.is_floating_point() or t.is_complex()]

        def hole(_: Tensor) -> Tensor:
            return _HOLE

        call = LaneCall(
            func, facts, map_tensors(widened(args), hole), map_tensors(widened(kwargs), hole), floats, outputs
        )
        values = [operand.computed for operand in operands]
        dtype = needs_decision(facts, args, kwargs, observed.tensors)
        if dtype is not None and not random:
            call = self._decided(call, values, dtype)
        call = LaneCall(func, facts, call.args, call.kwargs, floats, [])  # lets go of eager's results
        exact = replayed(call, [operand.exact for operand in operands], draw, values)
        changed = any(not operand.is_exact for operand in operands)
        local = replayed(call, values, draw, values) if changed else exact
        outcomes: list[WrittenTensor | None] = []
        overflows = 0
        before = max((self._relative(operand) for operand in operands if operand.has_floats), default=0.0)
        for index, real in enumerate(outputs):
            known = index < len(exact) and _is_kept(facts, real)
            if known and exact[index].shape != real.shape:
                raise ValueError(f"a result has shape {tuple(exact[index].shape)}, {tuple(real.shape)} as computed")
            wide = computed[index].dtype
            pair = (exact[index].to(wide), local[index].to(wide)) if known else (computed[index], computed[index])
            outcome, lost = self._outcome(real, computed[index], *pair)
            outcomes.append(outcome)
            overflows += lost
        if overflows and not all(bool(operand.computed.isfinite().all()) for operand in operands if operand.has_floats):
            overflows = 0  # it is told where it first happens
        self.tape.append(RecordedCall(site, call, operands, tuple(outcomes), draw, before, overflows))

    def _decided(self, call: LaneCall, values: list[Tensor], dtype: torch.dtype) -> LaneCall:
        """Return the call with its scalars as eager's kernel takes them."""
        args, kwargs = _filled((call.args, call.kwargs), values)
        decided = decide_scalars(
            LaneCall(call.operator, call.facts, args, kwargs, call.dtypes, call.real), args, kwargs, dtype
        )

        def hole(_: Tensor) -> Tensor:
            return _HOLE

        return LaneCall(
            call.operator,
            call.facts,
            map_tensors(decided.args, hole),
            map_tensors(decided.kwargs, hole),
            call.dtypes,
            call.real,
        )

    def _outcome(
        self, real: Tensor, computed: Tensor, exact: Tensor, local: Tensor
    ) -> tuple[WrittenTensor | None, int]:
        """Store one result, and return it with its errors; None where it has no memory."""
        if has_no_memory(real):
            return None, 0
        floats = computed.is_floating_point() or computed.is_complex()
        lost = 0
        if not floats:
            exact = computed if torch.equal(exact, computed) else exact
            storage = self._store_pair(real, computed, exact, 0.0)
            return WrittenTensor(storage, StoragePlace.of(real), computed, exact, None, 0.0, 0.0, 0.0), 0
        rounding, total = difference(computed, local), difference(computed, exact)
        size = _norm(exact)
        error, rounded = _norm(total), _norm(rounding)
        carried = 0.0 if local is exact else _norm(difference(local, exact))
        fine = None if math.isfinite(size) else torch.isfinite(exact)
        if fine is not None:
            size = _norm(torch.where(fine, exact, torch.zeros_like(exact)))
        if not math.isfinite(_norm(computed)):
            lost = int(((torch.isfinite(exact) if fine is None else fine) & ~torch.isfinite(computed)).sum())
        if error == 0.0 and not lost and bool((exact == computed).all()):
            exact = computed
        relative = tuple(share(part, size) for part in (error, carried, rounded))
        storage = self._store_pair(real, computed, exact, relative[0])
        return WrittenTensor(
            storage, StoragePlace.of(real), computed, exact, rounding if rounded else None, *relative
        ), lost

    def _relative(self, operand: ReadTensor) -> float:
        """Return the error of an operand by norm, relative to it."""
        if operand.is_exact:
            return 0.0
        if operand.storage is not None and operand.exact.numel() == operand.storage.exact.numel():
            return operand.storage.relative
        return share(_norm(difference(operand.computed, operand.exact)), _norm(operand.exact))

    def _store_pair(self, real: Tensor, computed: Tensor, exact: Tensor, relative: float) -> PairStorage:
        real = real.detach()
        storage = self._found(real)
        fresh = storage is None
        if storage is None:
            storage = PairStorage.of_result(real, computed, exact)
        elif not storage.write(
            StoragePlace.of(real), computed, exact
        ):  # through a view of another dtype: only bytes are known
            storage = PairStorage.of(real)
        part = real.numel() < storage.exact.numel()
        storage.relative = (
            share(_norm(difference(storage.computed, storage.exact)), _norm(storage.exact)) if part else relative
        )
        self._pairs[storage_key(real)] = storage
        self._new += fresh
        if self._new > _SWEEP:
            self._new = 0
            self._pairs = {key: each for key, each in self._pairs.items() if not storage_is_gone(each.alive)}
        return storage

    def _take(self, tensors: Any) -> None:
        """Take the program's numbers for exact ones."""
        for tensor in tensors:
            if has_no_memory(tensor):
                continue
            storage = self._found(tensor)
            if storage is not None:
                place = StoragePlace.of(tensor)
                value = place.meant(_stored(tensor.detach()).to(wide_dtype(tensor.dtype), copy=True))
                if not storage.write(StoragePlace.of(tensor), value, value):
                    del self._pairs[storage_key(tensor)]


def _stored(tensor: Tensor) -> Tensor:
    """Return what is stored for a tensor: a view without the conjugate or the sign that it stands for."""
    if tensor.is_neg():
        tensor = negative_view(tensor)
    return tensor.conj() if tensor.is_conj() else tensor


def difference(computed: Tensor, exact: Tensor) -> Tensor:
    """Return computed minus exact, zero where either is not finite."""
    return (computed - exact).nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)


def share(part: float, whole: float) -> float:
    """Return part over whole, for a whole of zero infinity, or zero of nothing."""
    if whole and math.isfinite(whole):
        return part / whole
    return math.inf if part else 0.0


def _norm(value: Tensor) -> float:
    if not value.numel() or not (value.is_floating_point() or value.is_complex()):
        return 0.0
    return float(torch.linalg.vector_norm(value))


def _same(tensor: Tensor, computed: Tensor) -> bool:
    """Return whether a tensor still holds what was computed; NaN is like NaN."""
    same = tensor == computed
    return bool(same.all()) or bool((same | ((tensor != tensor) & (computed != computed))).all())


def _is_kept(facts: OperatorFacts, real: Tensor) -> bool:
    """Return whether a result is a number of the program's, not a kernel's own table."""
    return "embedding_bag" not in facts.name or real.is_floating_point()
