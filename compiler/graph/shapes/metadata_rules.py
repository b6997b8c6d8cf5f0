"""What ATen calls give where that follows from the expressions of the sizes: rules of our own, in place of torch's.

A rule decides by identity: equal expressions are equal sizes, and a tensor is row-major if each stride is the product
of the sizes behind it.  Operands that are broadcast or multiplied demand that their sizes are equal, as torch's rules
do, and `unbind` that a size is what it is, for that counts its results.  What needs another assumption, an error or
another order of dimensions is left to torch's rules, which know all of these calls too, at ten times the cost.  Dtypes
are what torch says of tiny tensors.
tests/compiler/graph/shapes/test_metadata_rules.py holds every rule against the kernels and against torch's rules.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch

from ...base.torch_facts import OpOverload, WatchedFakeMode, aliases_nothing, decomposes_by_itself
from ..facts import is_elementwise
from . import constructor_rules, resizing_rules, view_rules  # noqa: F401  # they register their rules
from .fake_templates import Key, Number, key_of
from .sized_call import RULES, Findings, Operand, Rule, SizedCall, Undecided, gives

aten = torch.ops.aten


_COMPOSED = frozenset({aten.mvlgamma.default})  # elementwise, but its kernel orders dimensions as a sum over another


class MetadataRules:
    """The rules for the calls under one fake mode, with what they have found out."""

    def __init__(self) -> None:
        self.found = Findings()

    def __call__(self, mode: WatchedFakeMode, target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the fake result of a call, NotImplemented where torch has to say."""
        rule = rule_of(target)
        if rule is None or torch.is_inference_mode_enabled():
            return NotImplemented
        try:
            return rule(SizedCall(self.found, mode, target, args, kwargs))
        except Undecided:
            return NotImplemented


@cache
def rule_of(target: Any) -> Rule | None:
    """Return the rule of an operator; elementwise ones have one in common."""
    if not isinstance(target, OpOverload):
        return None
    rule = RULES.get(target)
    if rule is not None or not is_elementwise(target) or target in _COMPOSED:
        return rule
    single = len(target._schema.returns) == 1 and not target._schema.is_mutable
    return elementwise if single and aliases_nothing(target) and not decomposes_by_itself(target) else None


# -- elementwise calls -------------------------------------------------------------------------------------------------


def elementwise(call: SizedCall) -> torch.Tensor:
    """Operands are broadcast against each other; the result lies like them, where they agree."""
    if call.kwargs.get("memory_format") not in (None, torch.preserve_format):
        raise Undecided
    operands = call.operands()
    if _unite(call, operands):
        operands = call.operands()
    whole = [operand for operand in operands if operand.sizes]
    sizes, key = _broadcast(whole)
    dtype = call.tiny_tensor(len(sizes))
    if all(map(call.is_repeated_row_major, whole)):
        return call.row_major(sizes, dtype, operands[0])
    if any(operand.size_key != key or operand.stride_key != whole[0].stride_key for operand in whole):
        raise Undecided
    return call.laid_out_as(whole[0], dtype)


def _broadcast(operands: Sequence[Operand]) -> tuple[tuple[Number, ...], Key]:
    """Return the sizes of what operands are broadcast to."""
    if not operands:
        return (), ()
    first = operands[0]
    if all(operand.size_key == first.size_key for operand in operands):
        return first.sizes, first.size_key
    count = max(len(operand.sizes) for operand in operands)
    sizes: list[Number] = [1] * count
    key: list[Any] = [1] * count
    for operand in operands:
        missing = count - len(operand.sizes)
        for place, (size, one) in enumerate(zip(operand.sizes, operand.size_key, strict=True), missing):
            if key[place] == 1:
                sizes[place], key[place] = size, one
            elif one not in (1, key[place]):
                raise Undecided  # an error, or sizes that happen to be equal
    return tuple(sizes), tuple(key)


def _unite(call: SizedCall, operands: Sequence[Operand]) -> bool:
    """Demand that sizes are equal that operands have in one place; return whether one was not known to be."""
    demanded = False
    first, *others = sorted(operands, key=lambda operand: -len(operand.sizes))
    for other in others:
        missing = len(first.sizes) - len(other.sizes)
        for place, (size, one) in enumerate(zip(other.sizes, other.size_key, strict=True), missing):
            if first.size_key[place] == one or 1 in (first.size_key[place], one):
                continue
            if not call.demand_equal(first.sizes[place], size):
                raise Undecided
            demanded = True
    return demanded


@gives(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(call: SizedCall) -> torch.Tensor:
    """The result is a copy of the first operand, which grows otherwise than elementwise results do."""
    first, mask = call.operand("self"), call.operand("mask")
    if _broadcast([first, mask])[1] != first.size_key or not call.is_row_major(first):
        raise Undecided
    return call.row_major(first.sizes, call.tiny_tensor(len(first.sizes)), first)


@gives(aten._to_copy.default)
def to_copy(call: SizedCall) -> torch.Tensor:
    """Another dtype, in the same place."""
    if any(value is not None for name, value in call.kwargs.items() if name not in ("dtype", "non_blocking")):
        raise Undecided
    operand = call.operand("self")
    return call.laid_out_as(operand, call.value("dtype") or operand.tensor.dtype)


@gives(
    aten._softmax.default,
    aten._log_softmax.default,
    aten._softmax_backward_data.default,
    aten._log_softmax_backward_data.default,
    aten.cumsum.default,
    aten.cumprod.default,
    aten.logcumsumexp.default,
    aten.flip.default,
    aten.tril.default,
    aten.triu.default,
)
def as_first_operand(call: SizedCall) -> torch.Tensor:
    """All tensors have the sizes of the result, and are row-major."""
    operands = call.operands()
    first = operands[0]
    if any(operand.size_key != first.size_key or not call.is_row_major(operand) for operand in operands):
        raise Undecided
    call.demand_elements(first)
    return call.row_major(first.sizes, call.tiny_tensor(len(first.sizes)), first)


@gives(aten.embedding.default)
def rows_by_index(call: SizedCall) -> torch.Tensor:
    """A row of the table for each index."""
    table, places = call.operand("weight"), call.operand("indices")
    if len(table.sizes) != 2:
        raise Undecided
    return call.row_major((*places.sizes, table.sizes[1]), table.tensor.dtype, table)


@gives(aten.cat.default)
def joined(call: SizedCall) -> torch.Tensor:
    """Tensors of one dtype behind each other along a dimension; all are row-major."""
    operands = [call.as_operand(value) for value in call.value("tensors")]
    first = operands[0]
    place = call.value("dim")
    if type(place) is not int or not first.sizes:
        raise Undecided
    place %= len(first.sizes)
    for one in operands:
        other = one.size_key[:place], one.size_key[place + 1 :]
        if other != (first.size_key[:place], first.size_key[place + 1 :]) or one.tensor.dtype != first.tensor.dtype:
            raise Undecided
        if one.tensor.device != first.tensor.device:
            raise Undecided
        call.demand_elements(one)
    _demand_row_major(call, *operands)
    size = sum(one.sizes[place] for one in operands)
    return call.row_major((*first.sizes[:place], size, *first.sizes[place + 1 :]), first.tensor.dtype, first)


# -- reductions --------------------------------------------------------------------------------------------------------


@gives(
    aten.sum.dim_IntList,
    aten.mean.dim,
    aten.amax.default,
    aten.amin.default,
    aten.any.dim,
    aten.all.dim,
    aten.prod.dim_int,
    aten.var.correction,
    aten.std.correction,
    aten.logsumexp.default,
    aten.argmax.default,
    aten.argmin.default,
)
def reduced(call: SizedCall) -> torch.Tensor:
    """The dimensions that are named go, or stay with one element."""
    operand = call.operand("self")
    if not call.is_row_major(operand) or len(call.operands()) > 1:
        raise Undecided
    call.demand_elements(operand)
    named = call.value("dim")
    dims = {named} if isinstance(named, int) else set(named or ())
    count = len(operand.sizes)
    gone = {dim % count if count else 0 for dim in dims} or set(range(count))
    if call.value("keepdim"):
        sizes: list[Number] = [1 if n in gone else size for n, size in enumerate(operand.sizes)]
    else:
        sizes = [size for n, size in enumerate(operand.sizes) if n not in gone]
    return call.row_major(sizes, call.tiny_tensor(len(sizes)), operand)


@gives(aten.sum.default, aten.mean.default, aten.max.default, aten.min.default, aten.prod.default)
def reduced_to_one(call: SizedCall) -> torch.Tensor:
    """All dimensions go."""
    operand = call.operand("self")
    call.demand_elements(operand)
    return call.row_major((), call.tiny_tensor(0), operand)


# -- products and norms ------------------------------------------------------------------------------------------------


def _demand_row_major(call: SizedCall, *operands: Operand) -> None:
    if not all(map(call.is_row_major, operands)):
        raise Undecided


def _demand_a_product(call: SizedCall, first: Operand, second: Operand) -> None:
    if first.size_key[-1] != second.size_key[-2] and not call.demand_equal(first.sizes[-1], second.sizes[-2]):
        raise Undecided


@gives(aten.mm.default, aten.bmm.default)
def matrix_product(call: SizedCall) -> torch.Tensor:
    """Rows of the first by columns of the second, whatever the order of their elements."""
    first, second = call.operands()
    count = 2 if call.target is aten.mm.default else 3
    if (
        not len(first.sizes) == len(second.sizes) == count
        or first.size_key[: count - 2] != second.size_key[: count - 2]
    ):
        raise Undecided
    _demand_a_product(call, first, second)
    call.demand_elements(first)
    call.demand_elements(second)
    return call.row_major((*first.sizes[:-1], second.sizes[-1]), call.tiny_tensor(count), first)


@gives(aten.addmm.default)
def added_product(call: SizedCall) -> torch.Tensor:
    """The sum has the sizes of the product; what is added is broadcast."""
    added, first, second = call.operands()
    if not len(first.sizes) == len(second.sizes) == 2:
        raise Undecided
    _demand_a_product(call, first, second)
    call.demand_elements(first)
    call.demand_elements(second)
    key = (first.size_key[0], second.size_key[1])
    behind = key[2 - len(added.sizes) :] if len(added.sizes) <= 2 else None
    if behind is None or any(one not in (1, whole) for one, whole in zip(added.size_key, behind, strict=True)):
        raise Undecided
    return call.row_major((first.sizes[0], second.sizes[1]), call.tiny_tensor(2), first)


@gives(aten.native_layer_norm.default)
def layer_norm(call: SizedCall) -> tuple[torch.Tensor, ...]:
    """The result, and one mean and deviation for each row; halves that meet float32 are corrected afterwards."""
    operand, over = call.operand("input"), tuple(call.value("normalized_shape"))
    kept = len(operand.sizes) - len(over)
    if kept < 0 or key_of(over) != operand.size_key[kept:]:
        raise Undecided
    for name in ("weight", "bias"):
        if call.value(name) is not None and call.operand(name).size_key != key_of(over):
            raise Undecided
    _demand_row_major(call, operand)
    call.demand_elements(operand)
    dtype = operand.tensor.dtype
    rows = (*operand.sizes[:kept], *[1] * len(over))
    return (
        call.row_major(operand.sizes, dtype, operand),
        call.row_major(rows, dtype, operand),
        call.row_major(rows, dtype, operand),
    )


@gives(aten.native_layer_norm_backward.default)
def layer_norm_backward(call: SizedCall) -> tuple[torch.Tensor | None, ...]:
    """Gradients of the operand, the weight and the bias, where they are asked for."""
    operand, asked = call.operand("input"), call.value("output_mask")
    over, dtype = tuple(call.value("normalized_shape")), operand.tensor.dtype
    if call.operand("grad_out").size_key != operand.size_key:
        raise Undecided
    if any(one and call.value(name) is None for one, name in zip(asked[1:], ("weight", "bias"), strict=True)):
        raise Undecided
    if any(not call.is_row_major(one) or one.tensor.dtype != dtype for one in call.operands()):
        raise Undecided
    call.demand_elements(operand)
    return tuple(
        call.row_major(sizes, dtype, operand) if one else None
        for one, sizes in zip(asked, (operand.sizes, over, over), strict=True)
    )
