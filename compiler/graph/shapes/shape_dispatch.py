"""How torch takes a call apart where sizes are dynamic: by its rules in Python, or by those of eager in C++.

Many rules in C++ ask a size for its number, which fixes it; those in Python keep it open. But some rules in Python
compute something else. Dropout draws other random numbers at p=1, an RNN of several layers drops nothing, resizing of
images picks other pixels and rounds integers differently. Those calls are taken apart as eager does.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

import torch

from ...base.errors import Unsupported
from ...base.torch_facts import FakeTensor, enable_python_dispatcher, without_dispatch_modes
from .recurrent_dispatch import LAYERED, run_in_layers

aten = torch.ops.aten

# Rules in C++ that keep sizes dynamic, where those in Python are compositions with other rounding.
_DYNAMIC_IN_CPP = frozenset({"hardshrink", "softshrink", "multi_margin_loss", "multilabel_margin_loss"})
_RNNS = frozenset({"gru", "lstm", "rnn_tanh", "rnn_relu"})
# Positions of `dropout` and `train` behind the weights: with a padded batch, and with a packed one.
_PADDED, _PACKED = (5, 6), (6, 7)
_PADDED_COUNT = 9


@contextmanager
def python_shape_rules() -> Iterator[None]:
    """Keep sizes dynamic: take torch's rules in Python; torch's own context acts from when it is made."""
    with enable_python_dispatcher():
        yield


def call_with_dynamic_sizes(
    function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> object:
    """Call a function of torch or a method of a tensor on fake tensors with dynamic sizes.

    Raises Unsupported for an RNN with dropout on a packed batch: eager's rule reads the lengths in it.
    """
    name = getattr(function, "__name__", "")
    composed = _draws_by_composition(name, args, kwargs)
    if composed and name in _RNNS and _is_packed(args):
        raise Unsupported("dropout in an RNN on a packed batch, with dynamic sizes", hint="expected: it runs eagerly")
    if composed and name in LAYERED and len(args) == _PADDED_COUNT:
        with python_shape_rules():
            return run_in_layers(function, args)
    if function in _RESIZING:
        return _resized(function, args, kwargs)
    with nullcontext() if composed or name in _DYNAMIC_IN_CPP else python_shape_rules():
        return function(*args, **kwargs)


def _draws_by_composition(name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    """Return whether a call is composed of others among which some may draw random numbers."""
    if "dropout" in name:
        return not name.startswith("native_")
    if name in _RNNS:
        dropout, train = (_at(args, position) for position in (_PACKED if _is_packed(args) else _PADDED))
        return bool(train) and dropout != 0
    if name == "scaled_dot_product_attention":
        return kwargs.get("dropout_p", _at(args, 4)) != 0
    return False


def _is_packed(args: Sequence[object]) -> bool:
    """Return whether an RNN is called as `(data, batch_sizes, hx, weights, …)`."""
    return isinstance(_at(args, 3), list | tuple) and isinstance(_at(args, 1), torch.Tensor)


def _at(args: Sequence[object], position: int) -> object:
    return args[position] if position < len(args) else 0


# -- resizing ----------------------------------------------------------------------------------------------------------

_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "interpolate": {},
    "upsample": {},
    "upsample_nearest": {"mode": "nearest"},
    "upsample_bilinear": {"mode": "bilinear", "align_corners": True},
}
_RESIZING = frozenset(getattr(torch.nn.functional, name) for name in _DEFAULTS)  # not a user's of the same name
_KERNELS = {
    ("nearest", 3): aten.upsample_nearest1d.default,
    ("nearest", 4): aten.upsample_nearest2d.default,
    ("nearest", 5): aten.upsample_nearest3d.default,
    ("nearest-exact", 3): aten._upsample_nearest_exact1d.default,
    ("nearest-exact", 4): aten._upsample_nearest_exact2d.default,
    ("nearest-exact", 5): aten._upsample_nearest_exact3d.default,
    ("linear", 3): aten.upsample_linear1d.default,
    ("bilinear", 4): aten.upsample_bilinear2d.default,
    ("bicubic", 4): aten.upsample_bicubic2d.default,
    ("trilinear", 5): aten.upsample_trilinear3d.default,
}
_ANTIALIASED = {
    ("bilinear", 4): aten._upsample_bilinear2d_aa.default,
    ("bicubic", 4): aten._upsample_bicubic2d_aa.default,
}


def _resized(function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """Return what the kernel gives; its sizes are those of what a rule in Python composes of index operations."""
    bound = inspect.signature(function).bind(*args, **kwargs).arguments
    options = {**_DEFAULTS[function.__name__], **bound}
    x = options["input"]
    assert isinstance(x, FakeTensor)
    mode = str(options.get("mode", "nearest"))
    kernel = (_ANTIALIASED if options.get("antialias") else _KERNELS).get((mode, x.dim()))
    if kernel is None:  # mode "area" is pooling
        with python_shape_rules():
            return function(*args, **kwargs)
    # Nobody records the composition, which is not run.  The rule for bicubic images refuses channels that come last.
    with without_dispatch_modes(), x.fake_mode, torch.no_grad(), python_shape_rules():
        result = function(**{**bound, "input": x.contiguous()})
    assert isinstance(result, torch.Tensor)
    corners = () if mode.startswith("nearest") else (bool(options.get("align_corners")),)
    factors = None if options.get("recompute_scale_factor") else options.get("scale_factor")
    scales = factors if isinstance(factors, list | tuple) else [factors] * (x.dim() - 2)
    return kernel(x, result.shape[2:], *corners, *scales)
