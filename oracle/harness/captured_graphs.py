"""A captured graph: what a compiler passed to its next stage, with the input values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ..state.saved_tensors import as_bytes
from .compilers import CompileRequest


@dataclass(frozen=True, slots=True, eq=False)
class CapturedGraph:
    """One graph and the inputs of its first run, by value.

    label: which graph of the compiled call (`graph 0`, `forward`, `backward`, `inference`).
    """

    graph: fx.GraphModule
    inputs: tuple[object, ...]
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class CallToCapture:
    """A call whose graphs are asked for; drive: runs the compiled form of the target as the call does."""

    target: Callable[..., Any]
    request: CompileRequest
    drive: Callable[[Callable[..., Any]], None]


def cloned_inputs(values: Sequence[object]) -> tuple[object, ...]:
    """Copy tensors with their strides, offsets, `requires_grad` and shared memory; other values pass through.

    Each storage is copied once and its views are rebuilt on the copy.  Tensors that are not plain and strided
    (sparse, quantised, subclasses) are cloned one by one.  `.grad` and history are not copied: results are leaves.
    """
    storages: dict[int, torch.UntypedStorage] = {}
    seen: dict[int, torch.Tensor] = {}
    return tuple(_cloned(value, storages, seen) if isinstance(value, torch.Tensor) else value for value in values)


def _cloned(
    tensor: torch.Tensor, storages: dict[int, torch.UntypedStorage], seen: dict[int, torch.Tensor]
) -> torch.Tensor:
    if id(tensor) in seen:
        return seen[id(tensor)]
    with torch.no_grad():
        plain = tensor.detach()
        if plain.layout != torch.strided or plain.is_quantized or plain.is_conj() or plain.is_neg():
            copy = plain.clone()
        else:
            storage = plain.untyped_storage()
            if storage.data_ptr() not in storages:
                storages[storage.data_ptr()] = as_bytes(storage).clone().untyped_storage()
            copy = torch.empty(0, dtype=plain.dtype, device=plain.device)
            copy.set_(storages[storage.data_ptr()], plain.storage_offset(), tuple(plain.shape), plain.stride())
    if tensor.requires_grad:
        copy.requires_grad_()
    seen[id(tensor)] = copy
    return copy
