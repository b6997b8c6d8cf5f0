"""wrap_numpy: a function of NumPy arrays as one of tensors."""

import functools
from collections.abc import Callable
from typing import Any

import numpy
import torch

from .values.library.numpy_calls import array_of_tensor, tensor_of_array


def wrap_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function of NumPy arrays into a function of tensors; results are on the device of the inputs.

    Compiled, the tensors themselves stand for the arrays: they stay on their device, and gradients pass. Uncompiled,
    and between two graphs, NumPy runs on the CPU; where a gradient is asked for then, a UserError is raised.
    Tensors and arrays inside tuples, lists and dicts are converted.
    """

    @functools.wraps(function)
    def of_tensors(*args: Any, **kwargs: Any) -> Any:
        devices: list[torch.device] = []
        result = function(*_arrays(args, devices), **_arrays(kwargs, devices))
        return _tensors(result, devices[0] if devices else None)

    of_tensors.__dict__.pop("_plumbline_original", None)
    of_tensors.__dict__["_plumbline_inline"] = True
    return of_tensors


def _arrays(value: Any, devices: list[torch.device]) -> Any:
    """Return the value with tensors replaced by arrays; devices: a list to which the tensors' devices are added."""
    if isinstance(value, torch.Tensor):
        devices.append(value.device)
        return array_of_tensor(value)
    if type(value) in (tuple, list):
        return type(value)([_arrays(part, devices) for part in value])
    if type(value) is dict:
        return {key: _arrays(part, devices) for key, part in value.items()}
    return value


def _tensors(value: Any, device: torch.device | None) -> Any:
    """Return the value with arrays replaced by tensors."""
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return tensor_of_array(value, device)
    if type(value) in (tuple, list):
        return type(value)([_tensors(part, device) for part in value])
    if type(value) is dict:
        return {key: _tensors(part, device) for key, part in value.items()}
    return value


for _conversion in (_arrays, _tensors):
    vars(_conversion)["_plumbline_inline"] = True  # capture looks inside
