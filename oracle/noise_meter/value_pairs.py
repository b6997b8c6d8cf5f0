"""Memory twice: for every storage that a run writes, the numbers that it computed and the exact ones, in float64.

Both are written like values, never in place: what the tape has taken from them stays as it was.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.compiler.base.torch_facts import StorageWeakRef, negative_view, weak_reference

from ..noise.shadow_memory import wide_dtype

_PAIRS = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}


@dataclass(frozen=True, slots=True)
class StoragePlace:
    """Where the elements of a tensor are in its storage: size, stride and offset in elements of its dtype."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    conjugate: bool
    negative: bool

    @staticmethod
    def of(tensor: Tensor) -> "StoragePlace":
        """Return the place of a tensor."""
        size, stride = tuple(tensor.size()), tuple(tensor.stride())
        return StoragePlace(size, stride, int(tensor.storage_offset()), tensor.dtype, tensor.is_conj(), tensor.is_neg())

    def stored_view(self, flat: Tensor, dtype: torch.dtype) -> Tensor | None:
        """Return what is stored at this place in a wide copy [n] of a storage of `dtype`; None if it holds others.

        A conjugate or negative view stores the numbers without that.
        """
        if self.dtype != dtype:
            if _PAIRS.get(dtype) == self.dtype:
                flat = torch.view_as_real(flat).reshape(-1)
            elif _PAIRS.get(self.dtype) == dtype and not flat.numel() % 2:
                flat = torch.view_as_complex(flat.view(-1, 2))
            else:
                return None
        return flat.as_strided(self.size, self.stride, self.offset)

    def view(self, flat: Tensor, dtype: torch.dtype) -> Tensor | None:
        """Return the elements of this place, to be written; torch resolves views of the conjugate and the negative."""
        view = self.stored_view(flat, dtype)
        if view is None:
            return None
        if self.negative:
            return negative_view(view)
        return view.conj() if self.conjugate else view

    def read(self, flat: Tensor, dtype: torch.dtype) -> Tensor | None:
        """Return the elements of this place as numbers, computed here.

        An operator that torch calls to resolve a view sees no other view resolved.
        """
        view = self.stored_view(flat, dtype)
        return view if view is None else self.meant(view)

    def meant(self, stored: Tensor) -> Tensor:
        """Return the numbers that are meant by what is stored."""
        if self.negative:
            return stored.neg()
        return stored.conj_physical() if self.conjugate else stored

    def add_to(self, flat: Tensor, dtype: torch.dtype, values: Tensor) -> None:
        """Add values of this shape to the elements of `flat`, once for every way to reach one."""
        view = self.view(flat, dtype)
        if view is None:
            return
        repeated = [d for d, (n, step) in enumerate(zip(self.size, self.stride, strict=True)) if n > 1 and not step]
        if repeated:
            values = values.sum(repeated, keepdim=True)
            for dim in repeated:
                view = view.narrow(dim, 0, 1)
        if not _overlaps(view):
            view.add_(values)
            return
        places = torch.arange(view.untyped_storage().nbytes() // view.element_size())
        places = places.as_strided(view.size(), view.stride(), view.storage_offset()).reshape(-1)
        whole = torch.empty(0, dtype=view.dtype).set_(view.untyped_storage())
        whole.index_add_(0, places, values.reshape(-1).resolve_conj())


def _overlaps(view: Tensor) -> bool:
    """Return whether two elements may be at one address: steps in order of size have to leave room for each other."""
    reach = 0
    for step, size in sorted((step, size) for size, step in zip(view.size(), view.stride(), strict=True) if size > 1):
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


@dataclass(slots=True, eq=False)
class PairStorage:
    """One storage of the run: computed and exact numbers, wide, [n] each, one object where they are equal.

    relative: the last known error of the whole, by norm.
    """

    alive: StorageWeakRef
    dtype: torch.dtype
    size_bytes: int
    computed: Tensor
    exact: Tensor
    relative: float = 0.0

    @staticmethod
    def of(tensor: Tensor) -> "PairStorage":
        """Return the pair of a tensor's whole storage as it is now, without an error."""
        storage = tensor.untyped_storage()
        flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        flat.set_(storage, 0, (storage.nbytes() // tensor.dtype.itemsize,), (1,))
        wide = flat.to(wide_dtype(tensor.dtype), copy=True)
        return PairStorage(weak_reference(storage), tensor.dtype, storage.nbytes(), wide, wide)

    @staticmethod
    def of_result(tensor: Tensor, computed: Tensor, exact: Tensor) -> "PairStorage":
        """Return the pair of a fresh result; its numbers are taken over without a copy if they lie like the tensor."""
        length = tensor.untyped_storage().nbytes() // tensor.dtype.itemsize
        plain = tensor.numel() == length and not (tensor.storage_offset() or tensor.is_conj() or tensor.is_neg())
        if not plain or not all(value.is_contiguous() for value in (tensor, computed, exact)):
            pair = PairStorage.of(tensor)
            pair.write(StoragePlace.of(tensor), computed, exact)
            return pair
        flat = computed.view(-1)
        other = flat if exact is computed else exact.resolve_conj().resolve_neg().reshape(-1)
        storage = tensor.untyped_storage()
        return PairStorage(weak_reference(storage), tensor.dtype, storage.nbytes(), flat, other)

    def views(self, place: StoragePlace) -> tuple[Tensor, Tensor] | None:
        """Return computed and exact numbers at a place, None where the storage holds numbers of another kind."""
        computed = place.read(self.computed, self.dtype)
        if computed is None or self.exact is self.computed:
            return None if computed is None else (computed, computed)
        exact = place.read(self.exact, self.dtype)
        assert exact is not None
        return computed, exact

    def write(self, place: StoragePlace, computed: Tensor, exact: Tensor) -> bool:
        """Replace the numbers at a place; return False where the storage holds numbers of another kind."""
        shared = self.exact is self.computed and exact is computed
        self.computed, old = self.computed.clone(), self.exact
        view = place.stored_view(self.computed, self.dtype)
        if view is None:
            return False
        view.copy_(place.meant(computed))
        if shared:
            self.exact = self.computed
            return True
        self.exact = old.clone()
        other = place.stored_view(self.exact, self.dtype)
        assert other is not None
        other.copy_(place.meant(exact))
        return True
