"""Tensors and their memory saved before a call: storages by their bytes, tensors by what they view.

Bytes are restored without touching version counters.
"""

from contextlib import suppress

import torch

from ..equal_memory import equal_storages, storage_hash


class SavedStorage:
    """The bytes of one storage, kept alive so that its identity cannot be reused."""

    __slots__ = ("hash", "nbytes", "saved", "storage")

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self.storage = storage
        self.nbytes = storage.nbytes()
        self.saved: torch.UntypedStorage = storage.clone()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.hash = storage_hash(self.saved)

    def changed(self) -> bool:
        """Compare size and bytes."""
        if self.storage.nbytes() != self.nbytes:
            return True
        if self.hash is not None:
            return storage_hash(self.storage) != self.hash
        return self.nbytes > 0 and not equal_storages(self.storage, self.saved)

    def holds_equal_numbers(self, dtypes: set[torch.dtype]) -> bool:
        """Return whether the bytes, read as one floating-point dtype, hold the numbers that were saved.

        Signs of zero and payloads of NaN never decide, so a write that changes nothing else is no change.
        dtypes: of the tensors that view this storage.
        """
        if len(dtypes) != 1 or self.storage.nbytes() != self.nbytes:
            return False
        (dtype,) = dtypes
        if not (dtype.is_floating_point or dtype.is_complex) or self.nbytes % dtype.itemsize:
            return False
        now, before = (as_bytes(storage).view(dtype) for storage in (self.storage, self.saved))
        if dtype.is_complex:
            now, before = torch.view_as_real(now), torch.view_as_real(before)
        return bool(((now == before) | (now.isnan() & before.isnan())).all())

    def restore(self) -> None:
        """Copy the bytes back; version counters of its tensors do not change."""
        if not self.changed():
            return
        if self.storage.nbytes() != self.nbytes:
            self.storage.resize_(self.nbytes)
        if self.nbytes:
            self.storage.copy_(self.saved)


def as_bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    """Return the storage as a uint8 tensor of [nbytes], sharing memory."""
    with torch.no_grad():
        return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def version_of(value: torch.Tensor) -> int:
    """Return how often autograd has counted a write into a tensor's memory; 0 for one that does not count."""
    return 0 if value.is_inference() else int(value._version)


class SavedTensorState:
    """A tensor's own metadata: which memory it views, whether it requires grad, and its `.grad`."""

    __slots__ = ("alias", "grad", "grad_fn", "hooks", "requires_grad", "value", "version")

    def __init__(self, value: torch.Tensor) -> None:
        self.value = value
        self.alias = value.detach()
        self.requires_grad = value.requires_grad
        self.grad_fn = value.grad_fn
        self.grad = value.grad if value.is_leaf else None
        self.version = version_of(value)
        names = ("_backward_hooks", "_post_accumulate_grad_hooks") if value.is_leaf else ("_backward_hooks",)
        self.hooks = tuple((name, getattr(value, name), dict(getattr(value, name) or {})) for name in names)

    def moved(self) -> bool:
        """Return whether the tensor is another view than before, or of other memory."""
        if self.value.shape != self.alias.shape or self.value.dtype != self.alias.dtype:
            return True
        if self.value.layout == torch.sparse_coo and self.value.is_coalesced() != self.alias.is_coalesced():
            return True
        return any(map(_other_view, plain_parts(self.value), plain_parts(self.alias)))

    def changed(self) -> bool:
        """Compare metadata, not bytes (bytes belong to the storage)."""
        if self.moved() or self.value.requires_grad != self.requires_grad:
            return True
        if any(len(getattr(self.value, name) or ()) != len(kept) for name, _, kept in self.hooks):
            return True
        return self.value.is_leaf and self.grad_fn is None and self.value.grad is not self.grad

    def rewindable(self) -> bool:
        """Return False if the tensor's place in the autograd graph has changed for good: a view keeps its history."""
        return self.value.grad_fn is self.grad_fn or (self.grad_fn is None and self.value._base is None)

    def restore(self) -> None:
        """Restore memory, requires_grad, `.grad` and hooks."""
        self._restore_hooks()
        if self.value.grad_fn is not None and self.grad_fn is None:
            with suppress(RuntimeError):  # a view cannot be detached in place; `rewindable` reports it
                self.value.detach_()
        if self.moved():
            self.value.data = self.alias
        if self.value.is_leaf:
            if self.value.requires_grad != self.requires_grad:
                self.value.requires_grad_(self.requires_grad)
            if self.value.grad is not self.grad:
                self.value.grad = self.grad
        self.version = version_of(self.value)

    def _restore_hooks(self) -> None:
        """Take away the hooks that a run has registered; a table that autograd holds is emptied before it goes."""
        for name, before, content in self.hooks:
            now = getattr(self.value, name)
            if now is before and (now is None or list(now.items()) == list(content.items())):
                continue
            for table, kept in ((now, {}), (before, content)):
                if table is not None:
                    table.clear()
                    table.update(kept)
            if now is not before:
                setattr(self.value, name, before)


_PARTS = {
    torch.strided: (),
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}


def plain_parts(value: torch.Tensor) -> list[torch.Tensor]:
    """Return the strided tensors that a tensor consists of: itself, or the indices and values of a sparse one."""
    names = _PARTS[value.layout]
    if not names:
        return [value]
    with torch.no_grad():
        return [getattr(value, name)() for name in names]


def storages_of(value: torch.Tensor) -> list[int]:
    """Return the identities of the memory that a tensor views."""
    return [part.untyped_storage()._cdata for part in plain_parts(value)]


def can_be_saved(value: torch.Tensor) -> bool:
    """Return whether memory and form of the tensor can be set back; one on "meta" has a form alone."""
    if value.is_nested or value.layout not in _PARTS:
        return False
    return all(part.device.type == "meta" or has_storage(part) for part in plain_parts(value))


def _other_view(now: torch.Tensor, before: torch.Tensor) -> bool:
    return (
        now.untyped_storage()._cdata != before.untyped_storage()._cdata
        or now.shape != before.shape
        or now.stride() != before.stride()
        or now.storage_offset() != before.storage_offset()
    )


def is_freed(value: torch.Tensor) -> bool:
    """Return whether a tensor's memory has been made too small for its elements: reading them ends the process."""
    if value.layout != torch.strided or not value.numel() or not has_storage(value):
        return False
    last = value.storage_offset() + sum(
        (size - 1) * step for size, step in zip(value.shape, value.stride(), strict=True)
    )
    return value.untyped_storage().nbytes() < (last + 1) * value.element_size()


def is_shared_memory(value: torch.Tensor) -> bool:
    """Return whether a tensor on the CPU is in memory that other processes may open."""
    return value.device.type == "cpu" and has_storage(value) and value.untyped_storage().is_shared()


def has_storage(value: torch.Tensor) -> bool:
    """Return whether the tensor is a strided view of plain bytes that can be saved."""
    if value.is_nested or value.layout != torch.strided or value.device.type == "meta":
        return False
    try:
        storage = value.untyped_storage()
        return storage.nbytes() == 0 or storage.data_ptr() != 0  # a wrapper has bytes in name only
    except (NotImplementedError, RuntimeError):
        return False
