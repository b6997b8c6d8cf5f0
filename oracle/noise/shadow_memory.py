"""Shadow memory: for every storage a run touches, a copy of it for each lane of arithmetic.

A view of the real storage corresponds to the same view (size, stride, offset) of each shadow, so views, aliases,
detached and saved tensors need no extra work.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.compiler.base.torch_facts import negative_view

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


@dataclass(slots=True)
class ShadowStorage:
    """One real storage and its shadows.

    flat: the real storage as a 1-D tensor [n] (keeps it alive, so that its key is never used again).
    seen: the real bytes as the run last left them; a difference means a write that bypassed the run.
    lanes: [L, n], one row per lane, in the wide dtype.
    """

    flat: Tensor
    seen: Tensor
    lanes: Tensor
    size_bytes: int

    @staticmethod
    def of(tensor: Tensor, count: int) -> "ShadowStorage":
        """Return the shadow of a tensor's whole storage: `count` lanes that hold the exact upcast of its bytes."""
        storage = tensor.untyped_storage()
        length = storage.nbytes() // tensor.dtype.itemsize
        flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        flat.set_(storage, 0, (length,), (1,))
        lanes = flat.to(wide_dtype(tensor.dtype)).unsqueeze(0).repeat(count, 1)
        return ShadowStorage(flat, flat.clone(), lanes, storage.nbytes())

    def view(self, tensor: Tensor) -> Tensor | None:
        """Return [L, *shape], writable, the lanes of a tensor on this storage; None when its dtype does not fit."""
        return shadow_view(self.lanes, self.flat.dtype, tensor)

    def span(self, tensor: Tensor) -> tuple[int, int]:
        """Return the first and one past the last element of `flat` that a view on this storage can touch."""
        if tensor.dtype != self.flat.dtype:
            return 0, self.flat.numel()
        if tensor.numel() == 0:
            return 0, 0
        first = int(tensor.storage_offset())
        return first, first + sum(
            int((n - 1) * step) for n, step in zip(tensor.size(), tensor.stride(), strict=True)
        ) + 1

    def synchronise(self, tensor: Tensor) -> None:
        """Take over bytes of the tensor's span that were written outside the run; other elements keep their lanes."""
        first, last = self.span(tensor)
        now, then = self.flat[first:last], self.seen[first:last]
        bytes_now, bytes_then = now.view(torch.uint8), then.view(torch.uint8)
        if torch.equal(bytes_now, bytes_then):
            return
        changed = (bytes_now != bytes_then).view(-1, self.flat.dtype.itemsize).any(1)
        self.lanes[:, first:last][:, changed] = now[changed].to(self.lanes.dtype)
        then.copy_(now)

    def acknowledge(self, tensor: Tensor) -> None:
        """Remember the tensor's present bytes as the run's own write."""
        first, last = self.span(tensor)
        self.seen[first:last].copy_(self.flat[first:last])


def write_rows(rows: Tensor, lanes: Tensor) -> None:
    """Write lanes into a view of shadow memory, in which several elements may be one place (`expand().fill_()`).

    Eager lets only such calls write there that give all of them one value, so the first is written.
    """
    lanes = lanes.expand(rows.shape)
    for dim, (size, stride) in enumerate(zip(rows.shape, rows.stride(), strict=True)):
        if size > 1 and stride == 0:
            rows, lanes = rows.narrow(dim, 0, 1), lanes.narrow(dim, 0, 1)
    rows.copy_(lanes)
