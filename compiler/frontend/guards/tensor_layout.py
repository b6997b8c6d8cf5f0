"""Where a tensor object keeps what guards ask for, found by looking at tensors whose answers are known.

The C evaluator reads a tensor's dispatch keys from memory and asks torch's stable C interface for the rest.  Nothing is
assumed about torch's structures: each place is accepted only if it gives the right answer for every probe.  Without
them tensors are checked by Python attributes.
"""

import ctypes
from dataclasses import dataclass
from functools import cache, lru_cache

import torch

from ...base.torch_facts import dispatch_key_bits, tensor_address
from ...runtime.process_symbols import address_of
from ...values.guard import TensorFacts
from .steps import Metadata

_WORD = 8
_SEARCHED = 192  # bytes of a tensor's data that are searched for its dispatch keys; the object is longer
_FIELDS = ("dtype", "device_type", "device_index", "dim", "sizes", "strides")
_REQUIRES_GRAD = "_ZNK3c1010TensorImpl13requires_gradEv"  # c10::TensorImpl::requires_grad() const
_IS_LEAF = "_ZNK2at10TensorBase7is_leafEv"  # at::TensorBase::is_leaf() const


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """Offsets in bytes: of the handle in the Python object, of the dispatch keys in the data; addresses of functions.

    functions: dtype, device type, device index, dimensions, sizes, strides.  requires_grad, leaf: 0 where not found.
    """

    handle: int
    keys: int
    functions: tuple[int, ...]
    requires_grad: int
    leaf: int

    def places(self) -> tuple[int, ...]:
        """Return what the C evaluator reads."""
        return (self.handle, self.keys, *self.functions, self.requires_grad, self.leaf)

    def number(self, field: str, tensor: torch.Tensor) -> int:
        """Return torch's number for one field of a tensor."""
        function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32))
        answer = ctypes.c_int32()
        if function(self.functions[_FIELDS.index(field)])(id(tensor) + self.handle, ctypes.byref(answer)):
            raise ValueError(f"torch gives no {field}")
        return answer.value


@cache
def tensor_layout() -> TensorLayout | None:
    """Return the layout of this torch's tensors, None where a probe disagrees."""
    functions = [address_of(f"aoti_torch_get_{field}") for field in _FIELDS]
    if None in functions or ctypes.sizeof(ctypes.c_void_p) != _WORD:
        return None
    with torch.inference_mode(False), torch.enable_grad():
        probes = _probes()
        handle = _common_offset([(id(probe), type(probe).__basicsize__, tensor_address(probe)) for probe in probes])
        keys = _common_offset([(tensor_address(probe), _SEARCHED, dispatch_key_bits(probe)) for probe in probes])
        if handle is None or keys is None:
            return None
        known = tuple(function for function in functions if function is not None)
        requires_grad = _trusted(_REQUIRES_GRAD, [(tensor_address(p), p.requires_grad) for p in probes])
        leaf = _trusted(_IS_LEAF, [(id(p) + handle, p.is_leaf) for p in probes])
        layout = TensorLayout(handle, keys, known, requires_grad, leaf)
        return layout if all(_agrees(layout, probe) for probe in probes) else None


def _probes() -> list[torch.Tensor]:
    """Return tensors that differ in their dispatch keys, their need of gradients and their shape."""
    plain = torch.empty(3, 5, device="cpu")
    complex_ = torch.empty(4, dtype=torch.complex64, device="cpu")
    leaf = torch.empty(2, device="cpu", requires_grad=True)
    with torch.inference_mode():
        inference = torch.empty(2, device="cpu")
    return [
        plain,
        plain.t(),
        torch.empty((), dtype=torch.int64, device="cpu"),
        complex_,
        complex_.conj(),
        complex_.conj().imag,
        leaf,
        leaf * 2,
        torch.nn.Parameter(torch.empty(7, device="cpu")),
        inference,
        torch.empty(2, 3, 4, device="meta"),
        torch.empty(0, dtype=torch.bool, device="cpu"),
    ]


def _common_offset(probes: list[tuple[int, int, int]]) -> int | None:
    """Return the only offset at which every (address, bytes to search, word) has its word."""
    offsets: set[int] | None = None
    for address, size, word in probes:
        memory = ctypes.string_at(address, size - size % _WORD)
        pattern = word.to_bytes(_WORD, "little")
        here = {at for at in range(0, len(memory), _WORD) if memory[at : at + _WORD] == pattern}
        offsets = here if offsets is None else offsets & here
    return offsets.pop() if offsets is not None and len(offsets) == 1 else None


def _trusted(symbol: str, probes: list[tuple[int, bool]]) -> int:
    """Return the address of a function pointer -> bool that is right on every probe, else 0."""
    address = address_of(symbol)
    if address is None:
        return 0
    function = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(address)
    return address if all(function(where) is expected for where, expected in probes) else 0


def _agrees(layout: TensorLayout, tensor: torch.Tensor) -> bool:
    answer = ctypes.c_int64()
    numbers = ctypes.POINTER(ctypes.c_int64)()
    handle = id(tensor) + layout.handle
    if _call(layout.functions[3], handle, answer) or answer.value != tensor.dim():
        return False
    for function, expected in ((layout.functions[4], tensor.shape), (layout.functions[5], tensor.stride())):
        if _call(function, handle, numbers) or tuple(numbers[i] for i in range(tensor.dim())) != tuple(expected):
            return False
    return True


def _call(function: int, handle: int, place: "ctypes._CData") -> int:
    code: int = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(function)(
        handle, ctypes.addressof(place)
    )
    return code


def metadata(facts: TensorFacts) -> Metadata | None:
    """Return a tensor's metadata in torch's numbers, None for what only Python attributes can tell."""
    layout = tensor_layout()
    plain = facts.kind in (torch.Tensor, torch.nn.Parameter) and not any(facts.bits) and facts.stride is not None
    numbers = _numbers(facts.dtype, facts.device) if plain and layout is not None else None
    if numbers is None or facts.stride is None:
        return None
    leaf = int(facts.leaf) if facts.requires_grad else -1
    extents = tuple(-1 if number is None else int(number) for number in (*facts.shape, *facts.stride))
    return (*numbers, int(facts.requires_grad), leaf, extents)


@lru_cache(maxsize=256)
def _numbers(dtype: torch.dtype, device: torch.device) -> tuple[int, int, int, int] | None:
    """Return (dispatch keys, dtype, device type, device index) of ordinary strided tensors, by making one."""
    layout = tensor_layout()
    assert layout is not None
    try:
        with torch.inference_mode(False):
            probe = torch.empty(0, dtype=dtype, device=device)
        if type(probe) is not torch.Tensor or probe.dtype is not dtype or probe.device != device:
            return None
        fields = [layout.number(field, probe) for field in ("dtype", "device_type", "device_index")]
    except (RuntimeError, ValueError, TypeError):
        return None
    return (dispatch_key_bits(probe), fields[0], fields[1], fields[2])
