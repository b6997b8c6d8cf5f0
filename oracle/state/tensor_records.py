"""Tensors described by value, and which of them share memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch.autograd import forward_ad

from plumbline.compiler.base.torch_facts import forward_ad_is_active

from ..noise.plain_form import plain_form
from .children import is_mark, own_dict
from .kinds import ATOMS
from .saved_tensors import has_storage, is_freed, is_shared_memory


@dataclass(slots=True, eq=False)
class TensorRecord:
    """One tensor by value.

    value: a detached copy with the strides of the original.  storage: number of the storage, negative for those that
    existed before the call.  offset: in elements.  history: whether a step of autograd's graph made it.  lazy: whether
    its numbers are still to be conjugated or negated.  tangent: a copy of that of forward-mode AD.  facts: what only
    some tensors say of themselves.  memory: bytes of the storage.
    """

    value: torch.Tensor
    dtype: torch.dtype
    device: torch.device
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    storage: int | None
    requires_grad: bool
    history: bool
    inference: bool
    lazy: str
    tangent: torch.Tensor | None
    type_name: str
    facts: Mapping[str, object]
    memory: int
    original: torch.Tensor  # the live tensor: keeps its storage alive, finds its lanes

    def let_go_of_history(self) -> None:
        """Keep the memory of the tensor, and no longer the graph that made it, which holds what its backward needs."""
        if type(self.original) is torch.Tensor and self.original.grad_fn is not None and not self.original.is_nested:
            self.original = self.original.detach()

    def is_overwritten(self) -> bool:
        """Return whether fresh memory of a run holds other numbers now than when it was recorded."""
        if self.storage is None or self.storage < 0 or self.original.layout != torch.strided:
            return False
        now = _copy_of(self.original)
        return now.shape == self.value.shape and not torch.equal(_bytes_of(now), _bytes_of(self.value))


@dataclass(slots=True, eq=False)
class TensorRecorder:
    """Records the tensors of one run; numbers new storages in the order of the visit.

    known_storages: the numbers of those that existed before the call, by their identity.  ranges: by their addresses,
    where arrays of NumPy are among them.
    """

    known_storages: dict[int, int]
    ranges: Mapping[range, int]
    storages: dict[int, int] = field(default_factory=dict)

    def record(self, value: torch.Tensor) -> TensorRecord:
        """Return a tensor by value."""
        strided = value.layout == torch.strided
        storage = self._storage(value)
        facts = {**dict(_facts_of(value)), **(_attributes_of(value) if storage is None or storage >= 0 else {})}
        return TensorRecord(
            value=_copy_of(value),
            dtype=value.dtype,
            device=value.device,
            shape=tuple(value.shape),
            stride=tuple(value.stride()) if strided else (),
            offset=int(value.storage_offset()) if strided else 0,
            storage=storage,
            requires_grad=value.requires_grad,
            history=value.grad_fn is not None,
            inference=value.is_inference(),
            lazy=" and ".join(["conjugate"] * value.is_conj() + ["negative"] * value.is_neg()) or "nothing",
            tangent=_tangent_of(value),
            type_name=type(value).__qualname__,
            facts=facts,
            memory=value.untyped_storage().nbytes() if strided and has_storage(value) else 0,
            original=value,
        )

    def _storage(self, value: torch.Tensor) -> int | None:
        if not has_storage(value) or not value.untyped_storage().nbytes():
            return None
        key = value.untyped_storage()._cdata
        known = self.known_storages.get(key)
        if known is None and self.ranges and value.device.type == "cpu":
            known = owner_of(self.ranges, value.untyped_storage().data_ptr())
        return known if known is not None else self.storages.setdefault(key, len(self.storages))


def owner_of(ranges: Mapping[range, int], address: int) -> int | None:
    """Return the number of the memory that an address lies in, None for none of these."""
    return next((number for addresses, number in ranges.items() if address in addresses), None)


def _bytes_of(value: torch.Tensor) -> torch.Tensor:
    return value.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)


def _tangent_of(value: torch.Tensor) -> torch.Tensor | None:
    """Return a copy of the tangent that forward-mode AD has put beside a tensor, None without one."""
    if not forward_ad_is_active():
        return None
    tangent = forward_ad.unpack_dual(value).tangent  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return None if tangent is None else _copy_of(tangent)


def _facts_of(value: torch.Tensor) -> Iterator[tuple[str, object]]:
    """Yield what is worth saying of a tensor that is sparse, quantised, freed, or watched by hooks."""
    if value.layout == torch.sparse_coo:
        yield "is_coalesced()", value.is_coalesced()
    if value.layout != torch.strided and value.layout != torch.jagged:
        yield "layout, and numbers that are stored", (str(value.layout), value._nnz())
    elif is_shared_memory(value):
        yield "is_shared()", True
    if value.is_quantized:
        yield "the scheme of its quantisation", str(value.qscheme())
        if value.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            yield "scale and zero point", (value.q_scale(), value.q_zero_point())
        else:
            scales, points = value.q_per_channel_scales(), value.q_per_channel_zero_points()
            yield "scales and zero points", (scales.tolist(), points.tolist(), value.q_per_channel_axis())
    if is_freed(value):
        yield "memory", "freed"
    if value.retains_grad:
        yield "retains_grad", True
    if hooks := getattr(value, "_post_accumulate_grad_hooks", None) if value.is_leaf else None:
        yield "number of hooks after accumulation", len(hooks)


def _attributes_of(value: torch.Tensor) -> dict[str, object]:
    """Return the plain attributes of a tensor that the call made; those that were there before it are walked."""
    fields = own_dict(value) or {}
    return {
        f"attribute {name}": held
        for name, held in fields.items()
        if not is_mark(name) and isinstance(held, (*ATOMS, tuple))
    }


def _copy_of(value: torch.Tensor) -> torch.Tensor:
    """Return a detached copy by value; sparse and quantised tensors become plain."""
    with torch.no_grad():
        if value.device.type == "meta" or is_freed(value):
            return torch.empty(0, dtype=value.dtype)  # it has no numbers
        return plain_form(value).resolve_conj().resolve_neg().clone()
