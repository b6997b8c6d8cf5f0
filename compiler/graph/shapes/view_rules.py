"""Views whose sizes and strides follow from the expressions of the sizes."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from .fake_templates import Number, key_of
from .sized_call import Operand, SizedCall, Undecided, gives

aten = torch.ops.aten


def _reordered(call: SizedCall, operand: Operand, order: Sequence[int]) -> torch.Tensor:
    offset: Number = operand.tensor.storage_offset()
    return call.view(operand, [operand.sizes[n] for n in order], [operand.strides[n] for n in order], offset)


def _place(dimension: Any, count: int) -> int:
    """Return a dimension counted from the front."""
    if type(dimension) is not int or not -count <= dimension < count:
        raise Undecided
    return dimension % count


@gives(aten.detach.default, aten.alias.default)
def same(call: SizedCall) -> torch.Tensor:
    """The same elements."""
    operand = call.operand("self")
    return _reordered(call, operand, range(len(operand.sizes)))


@gives(aten.t.default)
def transposed_matrix(call: SizedCall) -> torch.Tensor:
    """Two dimensions change places; fewer stay."""
    operand = call.operand("self")
    if len(operand.sizes) > 2:
        raise Undecided
    return _reordered(call, operand, range(len(operand.sizes))[::-1])


@gives(aten.transpose.int)
def transposed(call: SizedCall) -> torch.Tensor:
    """Two dimensions change places."""
    operand = call.operand("self")
    order = list(range(len(operand.sizes)))
    one, other = (_place(call.value(name), len(order)) for name in ("dim0", "dim1"))
    order[one], order[other] = order[other], order[one]
    return _reordered(call, operand, order)


@gives(aten.permute.default)
def permuted(call: SizedCall) -> torch.Tensor:
    """All dimensions in another order."""
    operand = call.operand("self")
    order = [_place(dim, len(operand.sizes)) for dim in call.value("dims")]
    if sorted(order) != list(range(len(operand.sizes))):
        raise Undecided
    return _reordered(call, operand, order)


@gives(aten.unsqueeze.default)
def unsqueezed(call: SizedCall) -> torch.Tensor:
    """One dimension of one element more; its stride is that of a whole step over the next one."""
    operand = call.operand("self")
    place = _place(call.value("dim"), len(operand.sizes) + 1)
    sizes, strides = list(operand.sizes), list(operand.strides)
    strides.insert(place, sizes[place] * strides[place] if place < len(sizes) else 1)
    sizes.insert(place, 1)
    return call.view(operand, sizes, strides, operand.tensor.storage_offset())


@gives(aten.squeeze.dim)
def squeezed(call: SizedCall) -> torch.Tensor:
    """A dimension goes if it has one element."""
    operand = call.operand("self")
    if not operand.sizes:
        raise Undecided
    place = _place(call.value("dim"), len(operand.sizes))
    if operand.size_key[place] != 1 and call.least(operand.sizes[place]) < 2 and operand.size_key[place] != 0:
        raise Undecided
    kept = [n for n in range(len(operand.sizes)) if n != place or operand.size_key[n] != 1]
    return _reordered(call, operand, kept)


@gives(aten.expand.default)
def expanded(call: SizedCall) -> torch.Tensor:
    """Dimensions of one element are read again and again, and so are new ones in front."""
    operand, wanted = call.operand("self"), list(call.value("size"))
    missing = len(wanted) - len(operand.sizes)
    if missing < 0:
        raise Undecided
    sizes: list[Number] = []  # from the last dimension on
    strides: list[Number] = []
    for place in range(len(wanted) - 1, -1, -1):
        size, new = wanted[place], place < missing
        old = 1 if new else operand.size_key[place - missing]
        if not new and key_of([size])[0] in (-1, old):
            sizes.append(operand.sizes[place - missing])
            strides.append(operand.strides[place - missing])
        elif new and key_of([size])[0] == 1:  # its stride is that of a step over what is behind it
            strides.append(sizes[-1] * strides[-1] if sizes else 0)
            sizes.append(1)
        elif old == 1 and call.least(size) >= 2:
            sizes.append(size)
            strides.append(0)
        else:
            raise Undecided
    sizes.reverse()
    strides.reverse()
    return call.view(operand, sizes, strides, operand.tensor.storage_offset())


@gives(aten.select.int)
def selected(call: SizedCall) -> torch.Tensor:
    """One element of a dimension, which goes."""
    operand, index = call.operand("self"), call.value("index")
    if not operand.sizes or type(index) is not int:
        raise Undecided
    place = _place(call.value("dim"), len(operand.sizes))
    size = operand.sizes[place]
    if not -call.least(size) <= index < call.least(size):
        raise Undecided
    steps: Number = index if index >= 0 else size + index
    kept = [n for n in range(len(operand.sizes)) if n != place]
    offset = operand.tensor.storage_offset() + steps * operand.strides[place]
    return call.view(operand, [operand.sizes[n] for n in kept], [operand.strides[n] for n in kept], offset)


@gives(aten.unbind.int)
def unbound(call: SizedCall) -> tuple[torch.Tensor, ...]:
    """Each element of a dimension, whose size is demanded to be what it is; torch's rule slices for each of them."""
    operand = call.operand("self")
    if not operand.sizes:
        raise Undecided
    place = _place(call.value("dim"), len(operand.sizes))
    kept = [n for n in range(len(operand.sizes)) if n != place]
    sizes, strides = [operand.sizes[n] for n in kept], [operand.strides[n] for n in kept]
    offset, step = operand.tensor.storage_offset(), operand.strides[place]
    return tuple(call.view(operand, sizes, strides, offset + n * step) for n in range(int(operand.sizes[place])))


@gives(aten.split.Tensor, aten.split_with_sizes.default)
def divided(call: SizedCall) -> tuple[torch.Tensor, ...]:
    """Parts of a dimension behind each other, which together are all of it."""
    operand = call.operand("self")
    place = _place(call.value("dim"), len(operand.sizes))
    parts = call.value("split_size" if call.target is aten.split.Tensor else "split_sizes")
    size = operand.sizes[place]
    if not isinstance(parts, (list, tuple)):
        if type(parts) is not int or type(size) is not int or parts < 1 or size < 1:
            raise Undecided
        parts = [min(parts, size - start) for start in range(0, size, parts)]
    if any(call.least(part) < 1 for part in parts) or key_of([sum(parts)])[0] != operand.size_key[place]:
        raise Undecided
    results, offset = [], operand.tensor.storage_offset()
    for part in parts:
        sizes = [*operand.sizes[:place], part, *operand.sizes[place + 1 :]]
        results.append(call.view(operand, sizes, operand.strides, offset))
        offset = offset + part * operand.strides[place]
    return tuple(results)


@gives(aten.view.default, aten._unsafe_view.default)
def viewed(call: SizedCall) -> torch.Tensor:
    """The elements in other dimensions, of which one may be left open."""
    operand = call.operand("self")
    call.demand_elements(operand)
    sizes = list(call.value("size"))
    key = key_of(sizes)
    number, factors = _factors(operand.size_key)
    divisor, divisors = _factors([one for one in key if one != -1])
    if -1 in key:
        if key.count(-1) > 1 or not divisor or number % divisor or divisors - factors:
            raise Undecided
        sizes[key.index(-1)] = _product(number // divisor, factors - divisors, [*operand.sizes, *sizes])
    elif (number, factors) != (divisor, divisors):
        raise Undecided
    strides = (
        call.row_major_strides(sizes, key_of(sizes)) if call.is_row_major(operand) else _strides_of(operand, sizes)
    )
    return call.view(operand, sizes, strides, operand.tensor.storage_offset())


def _strides_of(operand: Operand, sizes: Sequence[Number]) -> list[Number]:
    """Return the strides of a view, where each of its dimensions is in a run of dimensions that lie row by row."""
    strides: list[Number] = []
    key, place = key_of(sizes), len(sizes) - 1
    for run in _runs(operand):
        whole = _factors([operand.size_key[n] for n in run])
        step: Number = operand.strides[run[-1]]
        taken: list[Any] = []
        while place >= 0 and (_factors(taken) != whole or key[place] == 1):
            strides.append(step)
            step = step * sizes[place]
            taken.append(key[place])
            place -= 1
        if _factors(taken) != whole:
            raise Undecided
    if place >= 0:
        raise Undecided
    return strides[::-1]


def _runs(operand: Operand) -> list[list[int]]:
    """Return the dimensions in runs that lie row by row, the last run first; those of one element are nowhere."""
    runs: list[list[int]] = []
    for place in range(len(operand.sizes) - 1, -1, -1):
        if operand.size_key[place] == 1:
            continue
        before = runs[-1][0] if runs else None
        if (
            before is not None
            and key_of([operand.sizes[before] * operand.strides[before]])[0] == operand.stride_key[place]
        ):
            runs[-1].insert(0, place)
        else:
            runs.append([place])
    return runs


def _factors(key: Sequence[Any]) -> tuple[int, Counter[Any]]:
    """Return a product as a whole number and expressions, each with how often it is there."""
    number, factors = 1, Counter[Any]()
    for one in key:
        if isinstance(one, int):
            number *= one
            continue
        for part in one.args if one.is_Mul else (one,):
            if part.is_Integer:
                number *= int(part)
            else:
                factors[part] += 1
    return number, factors


def _product(number: int, factors: Counter[Any], sizes: Sequence[Any]) -> Number:
    """Return the product as a size; each expression must be one of the sizes."""
    symbols = {size.node.expr: size for size in sizes if isinstance(size, torch.SymInt)}
    product: Number = number
    for factor in factors.elements():
        if factor not in symbols:
            raise Undecided
        product = product * symbols[factor]
    return product
