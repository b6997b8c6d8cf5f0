"""Input values as Python text that gives them back bit by bit: numbers when few, then base64, then a file."""

import base64
import io
import math
from dataclasses import dataclass

import torch

from ..graphs.graph_case import tensor_bytes

INLINE_BYTES = 4096
"""Inputs of a script that together are larger than this go to a file beside it."""
READABLE_ELEMENTS = 64
"""Elements of one tensor written as numbers; more are written as base64."""


@dataclass(frozen=True, slots=True)
class InputsText:
    """lines: statements that bind each input's name.  blob: content of the file that they read, None without one."""

    lines: tuple[str, ...]
    blob: bytes | None = None


def inputs_text(names: list[str], values: tuple[object, ...]) -> InputsText:
    """Write inputs by value: dtype, strides, offset, shared memory, requires_grad and every bit of every element.

    The lines use `torch`, `base64`, and for a blob `load_inputs()`.
    """
    if sum(_span_bytes(value) for value in values if isinstance(value, torch.Tensor)) > INLINE_BYTES:
        stream = io.BytesIO()
        torch.save(tuple(v.detach() if isinstance(v, torch.Tensor) else v for v in values), stream)
        lines = [f"{', '.join(names)}{',' if len(names) == 1 else ''} = load_inputs()"]
        lines += [f"{n}.requires_grad_()" for n, v in zip(names, values, strict=True) if _wants_gradient(v)]
        return InputsText(tuple(lines), stream.getvalue())
    writer = _ValueWriter(values)
    for name, value in zip(names, values, strict=True):
        writer.write(name, value)
    return InputsText(tuple(writer.lines))


def _wants_gradient(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _span_bytes(tensor: torch.Tensor) -> int:
    """Return how many bytes of memory the elements span, gaps included."""
    if tensor.layout != torch.strided or not tensor.numel():
        return tensor.numel() * tensor.element_size()
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return int((1 + sum((size - 1) * step for size, step in steps)) * tensor.element_size())


class _ValueWriter:
    """Writes tensors; views of one memory become views of one memory again."""

    def __init__(self, values: tuple[object, ...]) -> None:
        self.lines: list[str] = []
        tensors = [v for v in values if isinstance(v, torch.Tensor) and v.layout == torch.strided and v.numel()]
        keys = [tensor.untyped_storage().data_ptr() for tensor in tensors]
        self._shared = {key for key in keys if keys.count(key) > 1}
        self._memories: dict[int, str] = {}

    def write(self, name: str, value: object) -> None:
        if not isinstance(value, torch.Tensor):
            self.lines.append(f"{name} = {value!r}")
            return
        plain = value.detach()
        strided = plain.layout == torch.strided
        shared = strided and plain.numel() > 0 and plain.untyped_storage().data_ptr() in self._shared
        if strided and (shared or not plain.is_contiguous()):
            text = self._view(name, plain, shared=shared)
        else:
            text = _literal(plain)
        if value.device.type != "cpu":
            text += f".to({str(value.device)!r})"
        if value.requires_grad:
            text += ".requires_grad_()"
        self.lines.append(f"{name} = {text}")

    def _view(self, name: str, tensor: torch.Tensor, *, shared: bool) -> str:
        storage = tensor.untyped_storage()
        key, offset = storage.data_ptr(), int(tensor.storage_offset())
        if shared:
            memory = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            memory = memory.set_(storage, 0, (storage.nbytes() // tensor.element_size(),), (1,))
        else:
            length = _span_bytes(tensor) // tensor.element_size()
            memory, offset = tensor.as_strided((length,), (1,), offset), 0
        if key not in self._memories or not shared:
            self._memories[key] = f"{name}_memory"
            self.lines.append(f"{name}_memory = {_literal(memory)}")
        return f"{self._memories[key]}.as_strided({tuple(tensor.shape)}, {tuple(tensor.stride())}, {offset})"


def _literal(tensor: torch.Tensor) -> str:
    """Return an expression for a contiguous tensor with exactly these elements."""
    dtype = "" if tensor.dtype == torch.float32 else f", dtype={tensor.dtype}"
    shape = tuple(tensor.shape)
    if _holds_only(tensor, 1):
        return f"torch.ones({shape}{dtype})"
    if _holds_only(tensor, 0):
        return f"torch.zeros({shape}{dtype})"
    plain = tensor.layout == torch.strided and not tensor.is_complex() and not tensor.is_quantized
    if plain and 0 < tensor.numel() <= READABLE_ELEMENTS and _finite(tensor):
        return f"torch.tensor({tensor.tolist()!r}, dtype={tensor.dtype})"
    code = base64.b64encode(tensor_bytes(tensor)).decode("ascii")
    if not tensor.numel():
        return f"torch.empty({shape}, dtype={tensor.dtype})"
    elements = f'torch.frombuffer(bytearray(base64.b64decode("{code}")), dtype=torch.uint8)'
    return f"{elements}.view({tensor.dtype}).reshape({shape})"


def _holds_only(tensor: torch.Tensor, value: int) -> bool:
    if not tensor.numel() or not (tensor.is_floating_point() or tensor.dtype in (torch.int64, torch.int32, torch.bool)):
        return False
    exact = torch.full_like(tensor, value)
    return tensor_bytes(exact) == tensor_bytes(tensor)


def _finite(tensor: torch.Tensor) -> bool:
    """Return whether every element has a literal that gives its bits back (a NaN's payload has none)."""
    return all(math.isfinite(element) for element in tensor.flatten().tolist())
