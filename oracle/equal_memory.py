"""Memory compared byte by byte, as fast as it can be read: the first question about everything a call may change.

Where two tensors do not live at the same time, digests of 128 bits stand for their bytes.
"""

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
import xxhash
from torch import Tensor


@functools.cache
def _library_compare() -> Callable[[int, int, int], int] | None:
    """Return the C library's comparison of memory, None on systems where the process does not export it."""
    try:
        compare = ctypes.CDLL(None).memcmp
    except (AttributeError, OSError, TypeError):  # Windows has no library of the process itself
        return None
    compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    compare.restype = ctypes.c_int
    return compare


def equal_storages(first: torch.UntypedStorage, second: torch.UntypedStorage) -> bool:
    """Return whether two storages hold the same bytes; their devices are equal."""
    size = first.nbytes()
    if size != second.nbytes():
        return False
    compare = _library_compare()
    if size and compare is not None and first.device.type == "cpu":
        return compare(first.data_ptr(), second.data_ptr(), size) == 0
    return _equal_words(_bytes_of(first), _bytes_of(second))


def storage_hash(storage: torch.UntypedStorage) -> bytes | None:
    """Return a hash of 128 bits of what a storage holds; None on other devices than the CPU, and for no bytes.

    To look for a change it reads one memory where a comparison reads two.
    """
    size = storage.nbytes()
    if not size or storage.device.type != "cpu" or not storage.data_ptr():
        return None
    return xxhash.xxh3_128_digest((ctypes.c_char * size).from_address(storage.data_ptr()))


def equal_memory(first: Tensor, second: Tensor) -> bool:
    """Return True where two tensors certainly hold the same bytes at every element; False decides nothing.

    shapes and dtypes are equal.  Only dense tensors of one layout on the CPU are looked at.
    """
    if first.device.type != "cpu" or second.device.type != "cpu" or first.stride() != second.stride():
        return False
    if first.is_conj() != second.is_conj() or first.is_neg() != second.is_neg() or not _is_dense(first):
        return False
    compare = _library_compare()
    size = first.numel() * first.element_size()
    if compare is None or not size or not first.data_ptr() or not second.data_ptr():  # of wrappers: nothing there
        return not size
    return compare(first.data_ptr(), second.data_ptr(), size) == 0


@dataclass(frozen=True, slots=True)
class TensorDigest:
    """The form of a tensor and a hash of its numbers, row by row; payloads of NaN count."""

    type_name: str
    dtype: torch.dtype
    device: torch.device
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    numbers: bytes

    def has_numbers_of(self, tensor: Tensor) -> bool:
        """Return whether a tensor has this form, strides apart, and these numbers."""
        return self.dtype == tensor.dtype and self.shape == tuple(tensor.shape) and self.numbers == _hash_of(tensor)


def digest_of(tensor: Tensor) -> TensorDigest:
    """Return what stands for a strided tensor that is not kept."""
    stride = tuple(tensor.stride())
    name = type(tensor).__qualname__
    return TensorDigest(name, tensor.dtype, tensor.device, tuple(tensor.shape), stride, _hash_of(tensor))


def _hash_of(tensor: Tensor) -> bytes:
    """Return a hash of the numbers row by row, however they lie in memory."""
    with torch.no_grad():
        plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
        size = plain.numel() * plain.element_size()
        if size and not plain.data_ptr():  # zeros that are stored nowhere: autograd makes such gradients
            plain = plain.clone()
        memory = (ctypes.c_char * size).from_address(plain.data_ptr()) if size and plain.data_ptr() else b""
        return xxhash.xxh3_128_digest(memory)


def _is_dense(value: Tensor) -> bool:
    """Return whether a strided tensor fills a range of memory, each place once."""
    if value.layout != torch.strided or value.is_quantized:
        return False
    if value.is_contiguous():
        return True
    expected = 1
    for stride, size in sorted(zip(value.stride(), value.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _bytes_of(storage: torch.UntypedStorage) -> Tensor:
    with torch.no_grad():
        return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _equal_words(first: Tensor, second: Tensor) -> bool:
    """Compare bytes eight at a time as far as they go: torch compares elements one by one."""
    whole = first.numel() // 8 * 8
    heads = (first[:whole].view(torch.int64), second[:whole].view(torch.int64))
    return torch.equal(*heads) and torch.equal(first[whole:], second[whole:])
