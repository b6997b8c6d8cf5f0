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

_PRIMES = (11, 13, 17, 19, 23, 29)
Ask = Callable[[Sequence[object], Mapping[str, object]], object]  # arguments of known sizes -> what the kernel gives


def strides_at_primes(
    ask: Ask, args: Sequence[object], kwargs: Mapping[str, object], result: torch.Tensor
) -> tuple[Any, ...] | None:
    """Return the strides of `result` as expressions, None where the kernel refuses primes or its answer says nothing.

    ask: raises RuntimeError for what the kernel refuses.
    """
    primes: dict[Any, int] = {}
    sizes = [*result.shape]
    map_leaves((tuple(args), dict(kwargs)), lambda value: sizes.extend(_numbers_of(value)))
    taken = {size for size in sizes if type(size) is int}
    symbols = sorted({name for size in sizes for name in _symbols(size)}, key=str)
    free = [prime for prime in _PRIMES if prime not in taken]
    if len(symbols) > len(free):
        return None
    primes.update(zip(symbols, free, strict=False))
    try:
        known = map_leaves((tuple(args), dict(kwargs)), lambda value: _at(value, primes))
        shape = tuple(_number_at(size, primes) for size in result.shape)
        given = ask(*known)
    except (RuntimeError, TypeError):  # sizes have to be multiples of something, or fractions arise
        return None
    if not isinstance(given, torch.Tensor) or given.shape != shape:
        return None
    products = _products(result.shape, shape)
    strides = tuple(products.get(step) for step in given.stride())
    return None if None in strides else strides


def _products(sizes: Sequence[Any], numbers: Sequence[int]) -> dict[int, Any]:
    """Return every product of some of the sizes, by what it is at primes."""
    products: dict[int, Any] = {}
    for count in range(len(sizes) + 1):
        for chosen in combinations(range(len(sizes)), count):
            products.setdefault(prod(numbers[n] for n in chosen), prod(sizes[n] for n in chosen))
    return products


def _numbers_of(value: object) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [*value.shape, *value.stride()]
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
