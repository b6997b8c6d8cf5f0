"""Tensors described by value, and which of them share memory."""

from dataclasses import dataclass, field

import torch

from .saved_tensors import has_storage


@dataclass(frozen=True, slots=True, eq=False)
class TensorRecord:
    """One tensor by value.

    value: a detached copy with the strides of the original.  storage: number of the storage, negative for those that
    existed before the call.  offset: in elements.
    """

    value: torch.Tensor
    dtype: torch.dtype
    device: torch.device
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    storage: int | None
    requires_grad: bool
    type_name: str
    original: torch.Tensor  # the live tensor: keeps its storage alive, finds its lanes


@dataclass(slots=True, eq=False)
class TensorRecorder:
    """Records the tensors of one run; numbers new storages in the order of the visit.

    known_storages: the numbers of those that existed before the call, by their address.
    """

    known_storages: dict[int, int]
    storages: dict[int, int] = field(default_factory=dict)

    def record(self, value: torch.Tensor) -> TensorRecord:
        """Return a tensor by value."""
        strided = value.layout == torch.strided
        return TensorRecord(
            value=_copy_of(value),
            dtype=value.dtype,
            device=value.device,
            shape=tuple(value.shape),
            stride=tuple(value.stride()) if strided else (),
            offset=int(value.storage_offset()) if strided else 0,
            storage=self._storage(value),
            requires_grad=value.requires_grad,
            type_name=type(value).__qualname__,
            original=value,
        )

    def _storage(self, value: torch.Tensor) -> int | None:
        if not has_storage(value) or not value.untyped_storage().nbytes():
            return None
        key = value.untyped_storage()._cdata
        known = self.known_storages.get(key)
        return known if known is not None else self.storages.setdefault(key, len(self.storages))


def _copy_of(value: torch.Tensor) -> torch.Tensor:
    """Return a detached copy by value; sparse and quantised tensors become plain."""
    with torch.no_grad():
        plain = value.detach()
        if plain.layout != torch.strided:
            plain = plain.to_dense()
        if plain.is_quantized:
            plain = plain.dequantize()
        return plain.resolve_conj().resolve_neg().clone()
