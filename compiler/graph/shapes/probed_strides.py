"""How a kernel lays out a result whose sizes are dynamic: it is asked at sizes that are primes, and its answer is read.

For strides by which nothing is read each kernel has its own way.  Each symbol becomes a prime of its own, so that a
stride of the answer, a product of sizes, says of which sizes.  The program sees the expression; nothing is assumed.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any

import torch

from ...base.symbol_facts import size_expression
from ..dynamic_sizes import is_symbolic
from ..fx_nodes import map_leaves

_PRIMES = ((11, 13, 17, 19, 23, 29), (101, 103, 107, 109, 113, 127), (1009, 1013, 1019, 1021, 1031, 1033))
_FALLING = tuple(group[::-1] for group in _PRIMES)
_LARGE = _PRIMES[1:]
_MOST_ELEMENTS = 1 << 20  # of the largest tensor that is asked for
Ask = Callable[[Sequence[object], Mapping[str, object]], object]  # arguments of known sizes -> what the kernel gives


def strides_at_primes(
    ask: Ask,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    result: torch.Tensor,
    groups: Sequence[Sequence[int]] = _PRIMES,
) -> tuple[Any, ...] | None:
    """Return the strides of `result` as expressions, None where the kernel refuses primes or its answer says nothing.

    A size that is calculated, `n // 4 - 1`, can be 1 at a small prime, of which every stride is a multiple: then larger
    ones are tried.  ask: raises RuntimeError for what the kernel refuses.
    """
    tensors: list[torch.Tensor] = [result]
    map_leaves((tuple(args), dict(kwargs)), lambda value: _add_tensor(tensors, value))
    numbers = [number for tensor in tensors for number in (*tensor.shape, *tensor.stride())]
    map_leaves((tuple(args), dict(kwargs)), lambda value: numbers.extend(_numbers_of(value)))
    taken = {number for number in numbers if type(number) is int}
    symbols = sorted({name for number in numbers for name in _symbols(number)}, key=str)
    for candidates in groups:
        free = [prime for prime in candidates if prime not in taken]
        if len(symbols) > len(free):
            continue
        primes: dict[Any, int] = dict(zip(symbols, free, strict=False))
        try:
            telling = all(_is_telling(tensor, primes) for tensor in tensors)
            strides = _asked(ask, args, kwargs, result, primes) if telling else None
        except (RuntimeError, TypeError):  # sizes have to be multiples of something, or fractions arise
            return None
        if strides is not None:
            return strides
    return None


def strides_whatever_is_larger(
    ask: Ask, args: Sequence[object], kwargs: Mapping[str, object], result: torch.Tensor
) -> tuple[Any, ...] | None:
    """Return what `strides_at_primes` does, None where it hangs on which of two sizes is the larger one."""
    answers = [strides_at_primes(ask, args, kwargs, result, groups) for groups in (_PRIMES, _FALLING, _LARGE)]
    texts = {str(answer) for answer in answers}
    return answers[0] if len(texts) == 1 else None


def _asked(
    ask: Ask, args: Sequence[object], kwargs: Mapping[str, object], result: torch.Tensor, primes: Mapping[Any, int]
) -> tuple[Any, ...] | None:
    known = map_leaves((tuple(args), dict(kwargs)), lambda value: _at(value, primes))
    shape = tuple(_number_at(size, primes) for size in result.shape)
    given = ask(*known)
    if not isinstance(given, torch.Tensor) or given.shape != shape:
        return None
    products = _products(result.shape, shape)
    strides = tuple(products.get(step) for step in given.stride())
    return None if None in strides else strides


def _is_telling(tensor: torch.Tensor, primes: Mapping[Any, int]) -> bool:
    """Return whether a tensor is small at these primes, and no size or stride of it that varies is below 2."""
    varying = [number for number in (*tensor.shape, *tensor.stride()) if is_symbolic(number)]
    small = prod(_number_at(size, primes) for size in tensor.shape) <= _MOST_ELEMENTS
    return small and all(_number_at(number, primes) > 1 for number in varying)


def _products(sizes: Sequence[Any], numbers: Sequence[int]) -> dict[int, Any]:
    """Return every product of some of the sizes, by what it is at primes; None for what two of them are."""
    products: dict[int, Any] = {}
    for count in range(len(sizes) + 1):
        for chosen in combinations(range(len(sizes)), count):
            number, product = prod(numbers[n] for n in chosen), prod(sizes[n] for n in chosen)
            if number not in products:
                products[number] = product
            elif products[number] is not None and _expression(products[number]) != _expression(product):
                products[number] = None
    return products


def _expression(size: Any) -> Any:
    return size_expression(size) if is_symbolic(size) else size


def _add_tensor(tensors: list[torch.Tensor], value: object) -> None:
    if isinstance(value, torch.Tensor):
        tensors.append(value)


def _numbers_of(value: object) -> list[Any]:
    return [value] if is_symbolic(value) else []


def _symbols(size: Any) -> set[Any]:
    return set(size_expression(size).free_symbols) if is_symbolic(size) else set()


def _number_at(size: Any, primes: Mapping[Any, int]) -> int:
    """Return what a size is at primes; raises TypeError for what is no whole number there."""
    return int(size_expression(size).xreplace(primes)) if is_symbolic(size) else int(size)


def _at(value: object, primes: Mapping[Any, int]) -> object:
    if isinstance(value, torch.Tensor):
        shape, strides = ([_number_at(n, primes) for n in numbers] for numbers in (value.shape, value.stride()))
        return torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device)
    if isinstance(value, torch.SymInt):
        return _number_at(value, primes)
    if is_symbolic(value):
        raise TypeError("a fraction")
    return value
