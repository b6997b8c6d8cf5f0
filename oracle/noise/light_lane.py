"""A float64 lane or a few beside an ordinary eager run, nearly as cheap as more runs: shadows die with their storages.

It differs from a `ShadowRun` with such lanes in what it does not do.  Tensors that no followed operator has written
have no shadow (they are widened where they are used); results become shadows without a copy; nothing is looked at again
to find writes that bypass the run.  After such a write eager is far from its float64 evaluation; what judges by this
lane hands such a tensor to a `ShadowRun`.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.compiler.base.torch_facts import (
    StorageWeakRef,
    storage_key,
    weak_reference,
    without_torch_function,
)

from .lane_evaluation import LaneCall, LanePlan, plain
from .lanes import Lanes
from .monte_carlo import map_tensors, tensors_in
from .shadow import ArgumentsBefore, FollowedCall, ShadowRun, has_no_memory, is_plain
from .shadow_memory import shadow_view, wide_dtype, write_rows

EXACT_LANE, WIDE_LANE = LanePlan(1, 0, 0, 0), LanePlan(0, 0, 1, 0)


@dataclass(slots=True)
class LightStorage:
    """The shadow of one living storage: lanes [L, n] in the wide dtype of `dtype`, the dtype of the real one."""

    alive: StorageWeakRef
    dtype: torch.dtype
    size_bytes: int
    lanes: Tensor

    def view(self, tensor: Tensor) -> Tensor | None:
        """Return [L, *shape], writable, the lanes of a tensor on this storage; None when its dtype does not fit."""
        return shadow_view(self.lanes, self.dtype, tensor)


class _Apart:
    """Two of these around every operator: no gradient, no user mode, float64 as default dtype."""

    __slots__ = ("_default", "_function", "_grad")

    def __enter__(self) -> None:
        self._default, self._grad = torch.get_default_dtype(), torch.is_grad_enabled()
        self._function = without_torch_function()
        self._function.__enter__()
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)

    def __exit__(self, *how: object) -> None:
        torch.set_default_dtype(self._default)
        torch.set_grad_enabled(self._grad)
        self._function.__exit__(*how)


class LightLane(ShadowRun):
    """Follow eager code in one lane, the exact one, or in those of a plan without it.

    may_jump: an operator has compared, counted or selected by floats, so that rounding may decide a branch.
    """

    def __init__(self, plan: LanePlan = EXACT_LANE, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.plan = plan
        self._overwrites = False
        self.may_jump = False

    def lane_of(self, tensor: Tensor) -> Tensor | None:
        """Return the first lane of a tensor of the run in the wide dtype, sharing memory; None where it is opaque."""
        rows = self.rows_of(tensor)
        return None if rows is None else rows[0]

    def rows_of(self, tensor: Tensor) -> Tensor | None:
        """Return [L, *shape], the lanes of a tensor of the run, sharing memory; None where it is opaque."""
        with self._apart():
            return self._view(tensor) if is_plain(tensor) else None

    def drain(self, tensors: dict[str, Tensor]) -> Iterator[tuple[str, Tensor, Tensor]]:
        """Yield path, tensor and lane of each that has one, and let go of what has been seen: the dict is emptied."""
        waiting = Counter(storage_key(tensor) for tensor in tensors.values() if _has_key(tensor))
        for path in list(tensors):
            tensor = tensors.pop(path)
            lane = self.lane_of(tensor)
            if lane is not None:
                yield path, tensor, lane
            if _has_key(tensor):  # gradients of several leaves may be one tensor
                waiting[storage_key(tensor)] -= 1
                if not waiting[storage_key(tensor)]:
                    self._living.drop(tensor)

    def lanes_of(self, tensor: Tensor) -> Lanes:
        """Return the lanes of a tensor of the run, sharing memory; none of them where it is opaque."""
        rows = self.rows_of(tensor)
        return Lanes(known=False) if rows is None else self._sorted(rows, known=True)

    def _apart(self) -> contextlib.AbstractContextManager[None]:
        """Hide the work on the lane; warnings are those of a reference run, which nobody sees."""
        return self._hidden() if torch.is_inference_mode_enabled() else _Apart()

    def _evaluate(self, call: LaneCall) -> list[Tensor]:
        if not all(map(_is_of_floats, call.real)):  # places of the largest, a mask, a count
            self.may_jump |= any(map(_is_of_floats, tensors_in((call.args, call.kwargs))))
        if not self.plan.exact:
            if "as_strided" in call.facts.name:
                raise ValueError("lanes beside each other have no address of their own")
            return super()._evaluate(call)

        def lane(value: Tensor) -> Tensor:
            return value[0]

        values = plain(call, map_tensors(call.args, lane), map_tensors(call.kwargs, lane))
        for value, real in zip(values, call.real, strict=call.facts.replacement is None):
            if value.shape != real.shape and "embedding_bag" not in call.facts.name:
                raise ValueError(f"a lane has shape {tuple(value.shape)}, eager {tuple(real.shape)}")
        return [value.unsqueeze(0) for value in values]

    def _prepare(self, call: FollowedCall) -> ArgumentsBefore | None:
        facts = call.facts
        self._overwrites = bool(facts.written)
        # Where relu and its like are not smooth, their gradients jump.
        if facts.jumping or facts.name == "_local_scalar_dense" or (facts.moving and facts.name.endswith("_backward")):
            self.may_jump |= any(map(_is_of_floats, call.tensors))
        return super()._prepare(call)

    def _view(self, tensor: Tensor) -> Tensor:
        if has_no_memory(tensor):
            return tensor.new_zeros((self.plan.count, *tensor.shape), dtype=wide_dtype(tensor.dtype))
        storage: LightStorage | None = self._living.find(tensor)
        rows = storage.view(tensor) if storage is not None else None
        if rows is not None:
            return rows
        wide = wide_dtype(tensor.dtype)
        value = tensor.detach().to(wide)
        if wide == tensor.dtype and self._overwrites:  # eager's own memory, as it is before the operator writes to it
            value = value.clone()
        return value.unsqueeze(0).expand(self.plan.count, *value.shape)

    def _store(self, real: Tensor, lanes: Tensor | None) -> None:
        if has_no_memory(real):
            return
        storage: LightStorage | None = self._living.find(real)
        if lanes is None and storage is None:
            return  # widened where it is used
        if storage is None:
            assert lanes is not None
            self._adopt(real, lanes)
            return
        rows = storage.view(real)
        if rows is None:  # a write through a view of another dtype: only the bytes are known
            self._living.drop(real)
            return
        write_rows(rows, real.detach().unsqueeze(0) if lanes is None else lanes)

    def _adopt(self, real: Tensor, lanes: Tensor) -> None:
        """Make lanes the shadow of a new storage; they are copied unless they lie in memory as the real tensor does."""
        size = real.untyped_storage().nbytes()
        length, count = size // real.dtype.itemsize, self.plan.count
        values = lanes.resolve_conj().resolve_neg()
        wide = wide_dtype(real.dtype)
        whole = real.numel() == length and not real.storage_offset() and not real.is_conj() and not real.is_neg()
        behind = not values.storage_offset() and (count == 1 or (values.shape[0], values.stride(0)) == (count, length))
        if whole and behind and values.dtype == wide and _same_order(values[0], real):
            flat = values.as_strided((count, length), (length, 1))
        else:
            every = torch.empty(0, dtype=real.dtype, device=real.device)
            every.set_(real.untyped_storage(), 0, (length,), (1,))
            flat = every.to(wide).unsqueeze(0)
            # Memory of its own for each lane, and none of eager's where it is of that dtype already.
            if count > 1 or flat.untyped_storage()._cdata == real.untyped_storage()._cdata:
                flat = flat.repeat(count, 1)
            rows = shadow_view(flat, real.dtype, real)
            assert rows is not None
            write_rows(rows, lanes)
        storage = LightStorage(weak_reference(real.untyped_storage()), real.dtype, size, flat)
        self._living.add(real, storage, flat.nbytes)


def _has_key(tensor: Tensor) -> bool:
    return is_plain(tensor) and not has_no_memory(tensor)


def _same_order(first: Tensor, second: Tensor) -> bool:
    """Return whether two tensors of one shape have the same strides wherever these address memory."""
    return all(size == 1 or a == b for size, a, b in zip(first.shape, first.stride(), second.stride(), strict=True))


def _is_of_floats(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
