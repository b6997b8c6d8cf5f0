"""The only importer of private torch names: one place to mend per torch release.

Each name stands with what of ours breaks if torch changes it.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table  # oracle runs composites through smaller operators in its noisy lanes
from torch._ops import OpOverload  # every call_function target of an ATen graph; `_schema` is read by graph/facts
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # metadata of graph values, without their elements
from torch.utils._python_dispatch import TorchDispatchMode  # the oracle and the tracer see ATen calls by it

__all__ = [
    "FakeTensor",
    "FakeTensorMode",
    "OpOverload",
    "TorchDispatchMode",
    "backward_is_running",
    "decomposes_by_itself",
    "decomposition_of",
    "fake_mode_is_active",
    "functorch_is_active",
    "has_own_dispatch",
    "is_operator",
    "jit_is_tracing",
    "operator_schema",
    "storage_key",
    "without_torch_function",
]


def backward_is_running() -> bool:
    """Return whether the autograd engine is running a backward on this thread."""
    return torch._C._current_graph_task_id() != -1


def functorch_is_active() -> bool:
    """Return whether a functorch transform (vmap, grad, jvp, ...) surrounds this call."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def jit_is_tracing() -> bool:
    """Return whether torch.jit.trace is recording this call."""
    return torch._C._get_tracing_state() is not None


def decomposes_by_itself(operator: OpOverload) -> bool:
    """Return whether a call is only a composition of smaller ATen calls (seen unsplit where autograd is off).

    Read from the dispatcher: if the key moves, programs in inference mode are recorded with big operators.
    """
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    schema = operator._schema
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, key)


def decomposition_of(operator: Any) -> Callable[..., Any] | None:
    """Return torch's own decomposition of an ATen overload, None without one (then lanes run the operator whole)."""
    return decomposition_table.get(operator)


def operator_schema(operator: Any) -> Any:
    """Return the schema of an overload: its name, and which arguments it writes (oracle's lanes copy those)."""
    return operator._schema


def storage_key(tensor: torch.Tensor) -> int:
    """Return the identity of a tensor's storage, unique while the storage lives (shadow memory is found by it)."""
    key: int = tensor.untyped_storage()._cdata
    return key


def without_torch_function() -> Any:
    """Return a context in which no `__torch_function__` mode or subclass sees our calls (lanes stay unseen)."""
    return torch._C.DisableTorchFunction()


def fake_mode_is_active() -> bool:
    """Return whether calls run on fake tensors only; a judgement there would compare shapes, not values."""
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None


def has_own_dispatch(kind: type) -> bool:
    """Return whether a tensor type overrides `__torch_dispatch__` (shadow execution lets it unwrap itself first)."""
    return getattr(kind, "__torch_dispatch__", None) not in (None, torch._C._disabled_torch_dispatch_impl, torch.Tensor.__torch_dispatch__)


def is_operator(function: Any) -> bool:
    """Return whether a dispatched callable is an ordinary overload with a schema, not a higher-order operator."""
    return isinstance(function, OpOverload)


def unwrapped(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the plain tensor inside functorch's wrappers, None for a tensor that is no such wrapper."""
    functorch = torch._C._functorch
    if not functorch.is_functorch_wrapped_tensor(tensor):
        return None
    inner = tensor
    while functorch.is_functorch_wrapped_tensor(inner):
        inner = functorch.get_unwrapped(inner)
    return inner
