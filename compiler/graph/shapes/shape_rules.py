"""What a call gives on fake tensors: torch's shape rules, corrected where they promise what no CPU kernel gives.

A wrong rule is otherwise met when the graph runs (`promises`), and costs it its compiled code; where the call is
lowered to loops nobody would meet it. tests/meaning/test_shape_rules.py holds the table against the kernels, and says
when torch has mended one.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any

import torch

from ...base.dense_order import dense_strides
from ...base.errors import Unsupported
from ...base.torch_facts import (
    FakeTensor,
    FakeTensorMode,
    OpOverload,
    in_own_memory,
    set_version,
    without_dispatch_modes,
)
from ...base.torch_versions import precedes
from ..dynamic_sizes import is_symbolic, same_number
from ..facts import is_elementwise, op_facts
from ..fx_nodes import map_leaves
from .indexed_layout import with_indexed_strides
from .probed_strides import strides_at_primes, strides_whatever_is_larger
from .stride_rules import in_kernel_order, layout_of

aten = torch.ops.aten
DtypeRule = Callable[[Sequence[object]], Mapping[int, torch.dtype | None]]  # arguments -> dtypes of some results
_HALF = frozenset({torch.float16, torch.bfloat16})


# A rule divides by the number of elements where there are none, views what has no such view, asks for dimensions; the
# kernel knows better, or refuses too. What a rule means to refuse is a RuntimeError.
_FAILURES_OF_RULES = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError)
_LETS_PLACES_PASS = precedes(torch.__version__, "2.13")  # the rule of `select` in 2.11: generated code would read there
_MOST_ELEMENTS = 1_000_000
_MOST_ELEMENTS_ASKED = 65_536  # each elementwise call on an operand of such a layout runs its kernel once
# What these kernels save for backward depends on the way they take: the dtype, the strides, the CPU.
_KERNELS_CHOICE = frozenset({aten._embedding_bag.default, aten._embedding_bag_forward_only.default})


# Elementwise, and torch does not tag them so.
_UNTAGGED = frozenset(
    getattr(aten, name).default
    for name in (
        "floor_divide isclose mse_loss huber_loss smooth_l1_loss binary_cross_entropy binary_cross_entropy_with_logits "
        "hardswish hardswish_backward"
    ).split()
)

# Of these a result without dimensions is a number that is known while a program is captured.
_NUMBERS = frozenset({aten.scalar_tensor.default, aten.new_ones.default, aten.new_zeros.default})

# Of open sizes torch has no rule for these; this one joins its operands as they do.
_SHAPED_AS_ANOTHER = {
    aten.softshrink_backward.default: aten.threshold_backward.default,
    aten.hardshrink_backward.default: aten.threshold_backward.default,
}

_VIEWS = frozenset({aten.view.default, aten._unsafe_view.default})

# Not elementwise, or the gradients of such: where operands lie in other orders than row by row, each of these kernels
# has its own way, and torch's rules know it for few orders.
_OF_ANY_ORDER = frozenset(
    {
        getattr(aten, name).default
        for name in (
            "_log_softmax _softmax tril triu roll rot90 col2im im2col native_layer_norm native_layer_norm_backward "
            "native_batch_norm_backward glu_backward hardtanh_backward leaky_relu_backward log_sigmoid_backward "
            "_prelu_kernel_backward _cdist_backward upsample_bilinear2d"
        ).split()
    }
)


def fake_result(target: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """Return what a call gives on fake tensors; call it where fake tensors are made."""
    if _LETS_PLACES_PASS and target is aten.select.int:
        _demand_place(*args)
    if target in _KERNELS_CHOICE:
        if _is_small((args, kwargs)):
            return _as_the_kernel_gives(target, args, kwargs)
        if _has_symbols((args, kwargs)):
            raise Unsupported(
                f"{target}, with dynamic sizes", hint="expected: it is compiled for the sizes of each call"
            )
    ruled = _SHAPED_AS_ANOTHER[target] if target in _SHAPED_AS_ANOTHER and _has_symbols((args, kwargs)) else target
    try:
        result = ruled(*args, **kwargs)
    except _FAILURES_OF_RULES:
        if not _is_small((args, kwargs)):
            raise
        result = _as_the_kernel_gives(target, args, kwargs)
    _count_writes_of_lists(target, args, kwargs)
    return corrected(target, args, kwargs, in_own_memory(target, args, result))


def _has_symbols(args: object) -> bool:
    found: list[bool] = []

    def note(value: object) -> None:
        if isinstance(value, torch.Tensor):
            found.append(any(map(is_symbolic, value.shape)))

    map_leaves(args, note)
    return any(found)


def _is_small(args: object) -> bool:
    """Return whether the kernel can be asked: it is on the CPU, sizes are known, and the tensors fit."""
    tensors: list[torch.Tensor] = []

    def note(value: object) -> None:
        if isinstance(value, torch.Tensor):
            tensors.append(value)

    map_leaves(args, note)
    known = all(type(size) is int for tensor in tensors for size in (*tensor.shape, *tensor.stride()))
    on_cpu = all(isinstance(tensor, FakeTensor) and tensor.device.type == "cpu" for tensor in tensors)
    return bool(tensors) and known and on_cpu and sum(tensor.numel() for tensor in tensors) <= _MOST_ELEMENTS


def _as_the_kernel_gives(target: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """Return fake tensors like those that the kernel gives on zeros."""

    def real(value: object) -> object:
        if not isinstance(value, torch.Tensor):
            return value
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device).zero_()

    modes = []

    def note_mode(value: object) -> None:
        if isinstance(value, FakeTensor):
            modes.append(value.fake_mode)

    arguments = (tuple(args), dict(kwargs))
    map_leaves(arguments, note_mode)
    with without_dispatch_modes(), torch.no_grad():
        positional, named = map_leaves(arguments, real)
        result = target(*positional, **named)

    def fake(value: object) -> object:
        if not isinstance(value, torch.Tensor):
            return value
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)

    with modes[0], torch.no_grad():
        return map_leaves(result, fake)


def rule_as_of(twin: object, original: OpOverload) -> None:
    """Let the results of a functional twin go by the rule of the operator that it calls; they come first."""
    _ORIGINALS[twin] = original


def corrected(target: object, args: Sequence[object], kwargs: Mapping[str, object], result: object) -> object:
    """Return what torch's shape rule gave, with the dtypes and strides that a CPU kernel gives."""
    if target is aten.index.Tensor:
        return _indexed(args, kwargs, with_indexed_strides(args[0], args[1], result))
    if target is aten.nansum.default:
        return _reduced_over_all(args, result)
    if target in _VIEWS:
        return _viewed(args[0], result)
    if target in _NUMBERS:
        return _with_its_number(target, args, kwargs, result)
    if target in _ASKED:
        result = _of_dtype(result, _asked_dtype(target, args))
    if target in _OF_NOTHING and _is_empty(args[0]):
        return _OF_NOTHING[target](*args)
    if target in _PART_WRITTEN:
        _demand_equal_sizes(_PART_WRITTEN[target](args[0], *args[2:]), args[1])
    lay_out = _laid_out_by_kernel if _is_kernels_choice(target, args) else in_kernel_order
    result = lay_out(target, args, kwargs, result)
    if target in _ORIGINALS and isinstance(result, tuple):  # behind its results come those that it has written
        own = len(result) - len(op_facts(_ORIGINALS[target]).mutates)
        laid = in_kernel_order(_ORIGINALS[target], args, kwargs, result[:own])
        assert isinstance(laid, tuple)
        result = (*laid, *result[own:])
    rule = _RULES.get(_ORIGINALS.get(target, target))
    if rule is None or not isinstance(result, tuple) or _dtype(args[0]) not in _HALF:
        return result
    dtypes = rule(args)
    return tuple(_of_dtype(value, dtypes.get(index)) for index, value in enumerate(result))


def corrected_in(
    mode: FakeTensorMode, target: object, args: Sequence[object], kwargs: Mapping[str, object], result: object
) -> object:
    """Return what a fake mode gave, corrected: for where a program that is captured asks for it."""
    _count_writes_of_lists(target, args, kwargs)
    ruled = target in _NUMBERS or target in _OF_THEIR_OWN or target in _VIEWS or target in _RULES
    usual = not ruled and layout_of(target, args, kwargs) is None
    if usual and not _is_kernels_choice(target, args):
        return result
    with mode:
        return corrected(target, args, kwargs, result)


def _count_writes_of_lists(target: object, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Let a call that writes to lists of tensors count as a change of each: kernels count, and fakes run none.

    Autograd refuses a backward that needs what was written since, and it knows that by the count.
    """
    for place, name in _written_lists(target):
        value = args[place] if place < len(args) else kwargs.get(name, ())
        for part in value if isinstance(value, list | tuple) else ():
            if isinstance(part, torch.Tensor) and not part.is_inference():
                set_version(part, part._version + 1)


@cache
def _written_lists(target: object) -> tuple[tuple[int, str], ...]:
    """Return position and name of the lists of tensors that an operator writes to and counts."""
    if not isinstance(target, OpOverload) or target._schema.name.startswith(_UNCOUNTED):
        return ()
    each = enumerate(target._schema.arguments)
    written = [(place, one) for place, one in each if one.alias_info is not None and one.alias_info.is_write]
    return tuple((place, one.name) for place, one in written if isinstance(one.type, torch.ListType))


_UNCOUNTED = ("aten::_fused_", "aten::_amp_")  # torch's kernels for these write and count nothing


def _with_its_number(
    target: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object], result: object
) -> object:
    """Return a fake tensor that knows its number, so that compositions which ask it back, as `cov` does, can go on."""
    if not isinstance(result, FakeTensor) or result.dim() or result.device.type != "cpu":
        return result
    if any(map(is_symbolic, args)):
        return result
    converter: Any = result.fake_mode.fake_tensor_converter
    with without_dispatch_modes(), torch.no_grad():
        given = [torch.empty((), dtype=value.dtype) if isinstance(value, torch.Tensor) else value for value in args]
        number = target(*given, **kwargs)
    assert isinstance(number, torch.Tensor)
    result.constant = number
    converter.add_constant_storage_mapping(result)
    return result


def lies_otherwise(target: object, args: Sequence[object], kwargs: Mapping[str, object], result: object) -> bool:
    """Return whether a call that was taken apart gave another order in memory than its kernel does.

    To be asked where fake tensors are made. Of sizes that are dynamic, and of what draws numbers, nothing is said.
    """
    if not isinstance(target, OpOverload) or torch.Tag.nondeterministic_seeded in target.tags:
        return False
    if not _is_kernels_choice(target, args) and layout_of(target, args, kwargs) is None:
        return False
    if _has_symbols((args, kwargs)):
        return False
    whole = fake_result(target, args, kwargs)
    pairs = zip(*(part if isinstance(part, tuple) else (part,) for part in (whole, result)), strict=True)
    tensors = [(one, other) for one, other in pairs if isinstance(one, torch.Tensor)]
    return any(isinstance(other, torch.Tensor) and one.stride() != other.stride() for one, other in tensors)


def _is_kernels_choice(target: object, args: Sequence[object]) -> bool:
    """Return whether nothing but the kernel says how its result lies for these operands.

    For an elementwise call, if one has no elements, or a size of 1 with a stride that is not that of row-major memory.
    Each kernel has its own way with strides by which nothing is read, and torch's rules another; a program sees
    `stride()`.
    """
    if not isinstance(target, OpOverload):
        return False
    if target in _OF_ANY_ORDER:
        return any(isinstance(value, torch.Tensor) and not _is_row_major(value) for value in args)
    if not _has_its_own_way(target):
        return False
    return any(isinstance(value, torch.Tensor) and _is_loose(value) for value in args)


@cache
def _has_its_own_way(target: OpOverload) -> bool:
    """Return whether an elementwise operator decides how its result lies, and no keyword, which is not known here."""
    named = {argument.name for argument in target._schema.arguments}
    return (is_elementwise(target) or target in _UNTAGGED) and "memory_format" not in named


def _is_loose(value: torch.Tensor) -> bool:
    if not any(type(size) is int and size < 2 for size in value.shape):
        return False
    return not _is_row_major(value)


def _is_row_major(value: torch.Tensor) -> bool:
    """Return whether a tensor has elements, and strides as when it is made, also where it has one place."""
    if any(_is_zero(size) for size in value.shape):
        return False
    row_major = dense_strides(tuple(value.shape), range(value.dim()))
    return all(same_number(step, other) for step, other in zip(value.stride(), row_major, strict=True))


def _is_zero(size: object) -> bool:
    return type(size) is int and size == 0


def _laid_out_by_kernel(target: object, args: Sequence[object], kwargs: Mapping[str, object], result: object) -> object:
    """Return the result with the strides that the kernel gives it, where it is small enough to be asked."""
    assert isinstance(target, OpOverload)
    if isinstance(result, torch.Tensor) and _has_symbols((args, result)):
        strides = strides_at_primes(partial(_as_the_kernel_gives, target), args, kwargs, result)
        if strides is None:
            return in_kernel_order(target, args, kwargs, result)
        return torch.empty_strided(result.shape, strides, dtype=result.dtype, device=result.device)
    elements = sum(value.numel() for value in args if isinstance(value, torch.Tensor))
    if elements > _MOST_ELEMENTS_ASKED or not _is_small((args, kwargs)):
        return in_kernel_order(target, args, kwargs, result)
    try:
        given = _as_the_kernel_gives(target, args, kwargs)
    except RuntimeError:  # an operand is not zero
        return in_kernel_order(target, args, kwargs, result)
    if isinstance(result, tuple) and isinstance(given, tuple):
        return tuple(_lying_as(one, other) for one, other in zip(given, result, strict=True))
    return _lying_as(given, result)


def _indexed(args: Sequence[object], kwargs: Mapping[str, object], result: object) -> object:
    """Return what indexing gives, its strides those of the kernel also where sizes are dynamic."""
    indexes = [index for index in args[1] if isinstance(index, torch.Tensor)] if isinstance(args[1], Sequence) else []
    if not isinstance(result, torch.Tensor) or all(map(_is_row_major, indexes)) or not _has_symbols((args, result)):
        return result
    if any(index.dtype in (torch.bool, torch.uint8) for index in indexes):
        return result
    strides = strides_whatever_is_larger(partial(_as_the_kernel_gives, aten.index.Tensor), args, kwargs, result)
    if strides is None:
        raise Unsupported(
            "indexes that do not lie row by row, with dynamic sizes",
            hint="expected: it is compiled for the sizes of each call",
        )
    return torch.empty_strided(result.shape, strides, dtype=result.dtype, device=result.device)


def _viewed(source: object, result: object) -> object:
    """Return a view with ATen's strides, of which torch's rule for fake tensors has others where a size is 1."""
    if not isinstance(source, torch.Tensor) or not isinstance(result, torch.Tensor) or not _is_loose(source):
        return result
    if _has_symbols((source, result)):
        return result
    with without_dispatch_modes(), torch.no_grad():
        twin = torch.empty_strided(source.shape, source.stride(), dtype=source.dtype, device="meta")
        strides = twin.view(result.shape).stride()
    return result if strides == result.stride() else result.as_strided(result.shape, strides, result.storage_offset())


def _lying_as(given: object, result: object) -> object:
    """Return a result of the sizes that a rule says with the strides that the kernel gave."""
    if not isinstance(given, torch.Tensor) or not isinstance(result, torch.Tensor):
        return result
    if given.shape != result.shape or given.stride() == result.stride():
        return result
    return torch.empty_strided(given.shape, given.stride(), dtype=result.dtype, device=result.device)


def _of_dtype(value: object, dtype: torch.dtype | None) -> object:
    if not isinstance(value, torch.Tensor) or dtype is None or value.dtype == dtype or value.device.type != "cpu":
        return value
    return torch.empty_like(value, dtype=dtype)


def _dtype(value: object) -> torch.dtype | None:
    return value.dtype if isinstance(value, torch.Tensor) else None


def _statistics(args: Sequence[object], parameters: slice) -> torch.dtype | None:
    """Return the dtype of mean and deviation: float32 where a half tensor meets parameters that are not half."""
    mixed = any(_dtype(value) is torch.float32 for value in args[parameters])
    return torch.float32 if mixed else _dtype(args[0])


def _saved(parameters: slice) -> DtypeRule:
    return lambda args: dict.fromkeys((1, 2), _statistics(args, parameters))


def _saved_and_running(first: int) -> DtypeRule:
    """The new running statistics, from result `first` on, are copies of the old."""
    saved = _saved(slice(1, 5))
    return lambda args: {**saved(args), first: _dtype(args[3]), first + 1: _dtype(args[4])}


def _reduced_over_all(args: Sequence[object], result: object) -> object:
    """Take no dimensions for all of them, as the kernel of nansum does."""
    dimensions, keep = args[1] if len(args) > 1 else None, bool(args[2:3] and args[2])
    if dimensions is None or dimensions or not isinstance(result, torch.Tensor):
        return result
    return result.new_empty([1] * result.dim() if keep else [])


def _is_empty(value: object) -> bool:
    """Return whether a tensor is known to have no elements: a symbolic size is not asked."""
    return isinstance(value, torch.Tensor) and any(type(size) is int and size == 0 for size in value.shape)


def _unshuffled_nothing(x: torch.Tensor, factor: int) -> torch.Tensor:
    """Return what the kernel of pixel_unshuffle makes of no elements: a tensor of the same sizes."""
    for name, size in zip(("height", "width"), x.shape[-2:], strict=True):
        if size % factor:
            raise RuntimeError(f"pixel_unshuffle expects {name} to be divisible by downscale_factor")
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _tensors(args: Sequence[object]) -> list[torch.Tensor]:
    return [value for value in args if isinstance(value, torch.Tensor)]


@lru_cache(maxsize=256)
def _dtype_by_kernel(target: OpOverload, args: tuple[object, ...]) -> torch.dtype:
    """Return the dtype that a kernel gives; args: tensors as (dtype, rank), others as they are."""
    with without_dispatch_modes(), torch.no_grad():
        ones = [
            torch.ones((1,) * arg[1], dtype=arg[0], device="cpu") if isinstance(arg, tuple) else arg for arg in args
        ]
        result: torch.Tensor = target(*ones)
    return result.dtype


def _asked_dtype(target: object, args: Sequence[object]) -> torch.dtype | None:
    assert isinstance(target, OpOverload)
    tensors = _tensors(args)
    plain = all(isinstance(value, torch.Tensor | int | float | bool | None) for value in args)
    if not plain or len({tensor.dtype for tensor in tensors}) == 1:
        return None
    kinds = tuple((value.dtype, value.dim()) if isinstance(value, torch.Tensor) else value for value in args)
    return _dtype_by_kernel(target, kinds)


def _demand_place(tensor: object, dimension: object, index: Any) -> None:
    """Raise eager's error if there is no such place."""
    assert isinstance(tensor, torch.Tensor)
    if type(dimension) is not int or not -tensor.dim() <= dimension < tensor.dim():
        return  # torch's rule knows
    size: Any = tensor.shape[dimension]
    if not -size <= index < size:  # of an open size, this becomes a guard
        where = f"tensor of size {list(tensor.shape)} at dimension {dimension % tensor.dim()}"
        raise IndexError(f"select(): index {index} out of range for {where}")


def _selected(tensor: torch.Tensor, dimension: int, index: int) -> torch.Tensor:
    if _LETS_PLACES_PASS:
        _demand_place(tensor, dimension, index)
    part: torch.Tensor = aten.select.int(tensor, dimension, index)
    return part


def _demand_equal_sizes(part: torch.Tensor, source: object) -> None:
    """Raise eager's error if what is written into a part has other sizes; a part that is not there raises too."""
    assert isinstance(source, torch.Tensor)
    if source.shape != part.shape:
        sizes = f"src size = {list(source.shape)}, slice size = {list(part.shape)}"
        raise RuntimeError(f"expected src to have a size equal to the slice of self. {sizes}")


_PART_WRITTEN: Mapping[object, Callable[..., torch.Tensor]] = {
    aten.select_scatter.default: _selected,
    aten.slice_scatter.default: aten.slice.Tensor,
    aten.diagonal_scatter.default: aten.diagonal.default,
    aten.as_strided_scatter.default: aten.as_strided.default,
}
_ORIGINALS: dict[object, OpOverload] = {}
_OF_NOTHING: Mapping[object, Callable[..., torch.Tensor]] = {  # of a first argument without elements
    aten.pixel_unshuffle.default: _unshuffled_nothing,
    aten.repeat_interleave.Tensor: lambda repeats: repeats.new_empty(0),
}
# Of operands of several dtypes their kernels make one, torch's rules another.
_ASKED = frozenset(
    {
        aten.huber_loss.default,
        aten.soft_margin_loss.default,
        aten.addr.default,
        aten.ldexp.Tensor,
        aten.mse_loss_backward.default,
        aten.smooth_l1_loss_backward.default,
        aten.soft_margin_loss_backward.default,
    }
)
_OF_THEIR_OWN = frozenset({aten.index.Tensor, aten.nansum.default, *_ASKED, *_PART_WRITTEN, *_OF_NOTHING})
_RULES: Mapping[object, DtypeRule] = {
    aten.native_batch_norm.default: _saved(slice(1, 5)),
    aten._native_batch_norm_legit.default: _saved(slice(1, 5)),
    aten._native_batch_norm_legit.no_stats: _saved(slice(1, 3)),
    aten._batch_norm_no_update.default: _saved(slice(1, 5)),
    aten._batch_norm_with_update.default: _saved(slice(1, 5)),
    aten._native_batch_norm_legit_functional.default: _saved_and_running(3),
    aten._batch_norm_with_update_functional.default: _saved_and_running(4),
    aten.native_layer_norm.default: _saved(slice(2, 4)),
    aten.native_group_norm.default: _saved(slice(1, 3)),
    aten.native_group_norm_backward.default: lambda args: {0: _dtype(args[1])},
    aten._weight_norm_interface.default: lambda args: {1: torch.float32},
}
