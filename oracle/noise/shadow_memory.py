"""Shadow memory: for every storage a run touches, a copy of it for each lane of arithmetic.

A view of the real storage corresponds to the same view (size, stride, offset) of each shadow, so views, aliases,
detached and saved tensors need no extra work.
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from plumbline.compiler.base.torch_facts import (
    StorageWeakRef,
    negative_view,
    storage_is_gone,
    storage_key,
    weak_reference,
)

_PAIRS = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype that holds values of `dtype` in a lane: float64, complex128, or the dtype itself."""
    if dtype.is_floating_point:
        return torch.float64
    return torch.complex128 if dtype.is_complex else dtype


def shadow_view(lanes: Tensor, dtype: torch.dtype, tensor: Tensor) -> Tensor | None:
    """Return [L, *shape], writable, what `lanes` hold for a tensor; None when its dtype does not fit.

    lanes: [L, n], the shadows of the tensor's whole storage.  dtype: the real one's, when the shadows were made.
    """
    count, length = lanes.shape
    size, stride, offset = tensor.size(), tensor.stride(), tensor.storage_offset()
    if tensor.dtype != dtype:
        if _PAIRS.get(dtype) == tensor.dtype:
            lanes, length = torch.view_as_real(lanes), 2 * length
        elif _PAIRS.get(tensor.dtype) == dtype and length % 2 == 0:
            lanes, length = torch.view_as_complex(lanes.view(count, -1, 2)), length // 2
        else:
            return None
    view = lanes.as_strided((count, *size), (length, *stride), offset)
    if tensor.is_neg():
        return negative_view(view)
    return view.conj() if tensor.is_conj() else view


class Shadow(Protocol):
    """What lanes hold for one real storage."""

    @property
    def alive(self) -> StorageWeakRef:
        """Whether the storage is still there."""

    @property
    def size_bytes(self) -> int:
        """The size of the storage."""


AnyShadow = TypeVar("AnyShadow", bound=Shadow)

# Shadows of dead storages are looked for after this many new ones, or bytes of them.
_SWEEP = 48
_SWEEP_BYTES = 16 << 20


class LivingShadows(Generic[AnyShadow]):
    """The shadows of a run by the storages that they are of; they live little longer than these."""

    def __init__(self) -> None:
        self._by_key: dict[int, AnyShadow] = {}
        self._new = self._new_bytes = 0

    def __len__(self) -> int:
        return len(self._by_key)

    def find(self, tensor: Tensor) -> AnyShadow | None:
        """Return the shadow of a tensor's storage, None where it has none, or has been resized."""
        shadow = self._by_key.get(storage_key(tensor))
        return shadow if shadow is not None and shadow.size_bytes == tensor.untyped_storage().nbytes() else None

    def add(self, tensor: Tensor, shadow: AnyShadow, size_bytes: int) -> AnyShadow:
        """Make this the shadow of a tensor's storage.  size_bytes: of the shadow itself."""
        self._by_key[storage_key(tensor)] = shadow
        self._new += 1
        self._new_bytes += size_bytes
        if self._new > _SWEEP or self._new_bytes > _SWEEP_BYTES:
            self._new = self._new_bytes = 0
            self._by_key = {key: each for key, each in self._by_key.items() if not storage_is_gone(each.alive)}
        return shadow

    def drop(self, tensor: Tensor) -> None:
        """Forget the shadow of a tensor's storage, if it has one."""
        self._by_key.pop(storage_key(tensor), None)


@dataclass(slots=True)
class ShadowStorage:
    """One real storage and its shadows.

    alive: the real storage, which is not kept alive.  dtype: that of its numbers.
    seen: the real bytes as the run last left them; a difference means a write that bypassed the run.
    lanes: [L, n], one row per lane, in the wide dtype.
    """

    alive: StorageWeakRef
    dtype: torch.dtype
    seen: Tensor
    lanes: Tensor
    size_bytes: int

    @staticmethod
    def of(tensor: Tensor, count: int) -> "ShadowStorage":
        """Return the shadow of a tensor's whole storage: `count` lanes that hold the exact upcast of its bytes."""
        flat = _flat(tensor, tensor.dtype)
        lanes = flat.to(wide_dtype(tensor.dtype)).unsqueeze(0).repeat(count, 1)
        storage = tensor.untyped_storage()
        return ShadowStorage(weak_reference(storage), tensor.dtype, flat.clone(), lanes, storage.nbytes())

    def view(self, tensor: Tensor) -> Tensor | None:
        """Return [L, *shape], writable, the lanes of a tensor on this storage; None when its dtype does not fit."""
        return shadow_view(self.lanes, self.dtype, tensor)

    def span(self, tensor: Tensor) -> tuple[int, int]:
        """Return the first and one past the last element of the storage that a view on it can touch."""
        if tensor.dtype != self.dtype:
            return 0, self.seen.numel()
        if tensor.numel() == 0:
            return 0, 0
        first = int(tensor.storage_offset())
        return first, first + sum(
            int((n - 1) * step) for n, step in zip(tensor.size(), tensor.stride(), strict=True)
        ) + 1

    def synchronise(self, tensor: Tensor) -> None:
        """Take over bytes of the tensor's span that were written outside the run; other elements keep their lanes."""
        first, last = self.span(tensor)
        now, then = _flat(tensor, self.dtype)[first:last], self.seen[first:last]
        bytes_now, bytes_then = now.view(torch.uint8), then.view(torch.uint8)
        if torch.equal(bytes_now, bytes_then):
            return
        changed = (bytes_now != bytes_then).view(-1, self.dtype.itemsize).any(1)
        self.lanes[:, first:last][:, changed] = now[changed].to(self.lanes.dtype)
        then.copy_(now)

    def acknowledge(self, tensor: Tensor) -> None:
        """Remember the tensor's present bytes as the run's own write."""
        first, last = self.span(tensor)
        self.seen[first:last].copy_(_flat(tensor, self.dtype)[first:last])


def _flat(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a tensor's whole storage as numbers of this dtype, [n]."""
    storage = tensor.untyped_storage()
    flat = torch.empty(0, dtype=dtype, device=tensor.device)
    return flat.set_(storage, 0, (storage.nbytes() // dtype.itemsize,), (1,))


def write_rows(rows: Tensor, lanes: Tensor) -> None:
    """Write lanes into a view of shadow memory, in which several elements may be one place (`expand().fill_()`).

    Eager lets only such calls write there that give all of them one value, so the first is written.
    """
    lanes = lanes.expand(rows.shape)
    for dim, (size, stride) in enumerate(zip(rows.shape, rows.stride(), strict=True)):
        if size > 1 and stride == 0:
            rows, lanes = rows.narrow(dim, 0, 1), lanes.narrow(dim, 0, 1)
    rows.copy_(lanes)
