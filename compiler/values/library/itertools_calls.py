"""The iterators of itertools, as generators over values."""

import itertools
import types
from collections.abc import Iterator
from typing import Any

from ..constant import Constant
from ..python.containers.iterators import Groups, IteratorValue, accumulated, chained, filtered
from ..python.containers.tuples import TupleValue
from ..python.objects.classes import constructs
from ..python.operators import binary
from ..reasons import ARGUMENT_NOT_KNOWN, Break
from ..rule_tables import CallRule, calls
from ..value import Arguments, CaptureContext, Keywords, Value, elements_of


def _demand(ctx: CaptureContext, kind: Any, *args: object, **kwargs: object) -> None:
    """Raise what Python raises for the known arguments of an iterator."""
    try:
        kind(*args, **kwargs)
    except (TypeError, ValueError, OverflowError) as error:
        ctx.throw(type(error), *error.args)


def _iterator(ctx: CaptureContext, value: Value) -> Value:
    return ctx.realize(ctx.realize(value).iterate(ctx))


def _number(ctx: CaptureContext, value: Value | None, default: int) -> int:
    if value is None:
        return default
    number = ctx.realize(value).constant() if ctx.realize(value).is_constant() else None
    if not isinstance(number, int):
        raise Break(ARGUMENT_NOT_KNOWN, "itertools with a count that is not known")
    return number


@constructs(itertools.chain)
def _chain(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return IteratorValue(kind, chained(ctx, iter(args)), ctx)


@constructs(itertools.product, itertools.permutations, itertools.combinations, itertools.combinations_with_replacement)
def _combinatoric(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    if kind is itertools.product:
        repeat = _number(ctx, kwargs.get("repeat"), 1)
        _demand(ctx, kind, repeat=repeat)
        pools = [ctx.unpack(arg) for arg in args] * repeat
        rows: Iterator[tuple[Value, ...]] = itertools.product(*pools)
    else:
        iterable, count, *_ = [*args, *(kwargs[name] for name in ("iterable", "r") if name in kwargs), Constant(None)]
        items: list[Any] = ctx.unpack(iterable)
        if kind is itertools.permutations and ctx.realize(count).identity() is None:
            rows = itertools.permutations(items)
        else:
            number = _number(ctx, count, 0)
            _demand(ctx, kind, (), number)
            chosen: Any = kind  # checked by the entry above
            rows = chosen(items, number)
    return IteratorValue(kind, (TupleValue(list(row)) for row in rows), ctx, pure=True)


@constructs(itertools.islice)
def _islice(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    bounds = [ctx.realize(arg).constant() for arg in args[1:]]
    numbers = [bound for bound in bounds if bound is None or isinstance(bound, int)]
    if len(numbers) != len(bounds):
        raise Break(ARGUMENT_NOT_KNOWN, "islice with bounds that are not whole numbers")
    _demand(ctx, kind, (), *numbers)
    start, stop, step = (None, numbers[0], None) if len(numbers) == 1 else (*numbers, None)[:3]
    return IteratorValue(kind, itertools.islice(elements_of(ctx, _iterator(ctx, args[0])), start, stop, step), ctx)


@constructs(itertools.zip_longest)
def _zip_longest(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    fill = kwargs.get("fillvalue", Constant(None))
    rows = itertools.zip_longest(*[elements_of(ctx, _iterator(ctx, arg)) for arg in args], fillvalue=fill)
    return IteratorValue(kind, (TupleValue(list(row)) for row in rows), ctx)


@constructs(itertools.repeat)
def _repeat(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    times = kwargs.get("times", args[1] if len(args) > 1 else None)
    element = args[0] if args else kwargs["object"]
    steps = itertools.repeat(element) if times is None else itertools.repeat(element, _number(ctx, times, 0))
    return IteratorValue(kind, steps, ctx)


@constructs(itertools.count)
def _count(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    start = args[0] if args else kwargs.get("start")
    step = args[1] if len(args) > 1 else kwargs.get("step")
    try:  # it refuses what is not a number
        itertools.count(
            *(ctx.realize(arg).stand_in() for arg in args),
            **{name: ctx.realize(value).stand_in() for name, value in kwargs.items()},
        )
    except TypeError as error:
        ctx.throw(TypeError, *error.args)
    except Break:
        pass
    return IteratorValue(kind, counted(ctx, start or Constant(0), step or Constant(1)), ctx)


def counted(ctx: CaptureContext, start: Value, step: Value) -> Iterator[Value]:
    """Give the steps of itertools.count()."""
    number = ctx.realize(start)
    if number.python_type() is bool and number.is_constant():  # counted as a number of C
        number = Constant(int(number.truth(ctx)))
    while True:
        yield number
        number = ctx.realize(binary(ctx, "+", number, step))


@constructs(itertools.cycle)
def _cycle(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return IteratorValue(kind, itertools.cycle(elements_of(ctx, _iterator(ctx, args[0]))), ctx)


@constructs(itertools.starmap)
def _starmap(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    steps = elements_of(ctx, _iterator(ctx, args[1]))
    return IteratorValue(kind, (ctx.call(args[0], ctx.unpack(row), {}) for row in steps), ctx)


@constructs(itertools.accumulate)
def _accumulate(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    function: Value | None = ctx.realize(args[1] if len(args) > 1 else kwargs.get("func", Constant(None)))
    function = None if isinstance(function, Constant) else function
    initial: Value | None = ctx.realize(kwargs.get("initial", Constant(None)))
    initial = None if isinstance(initial, Constant) and initial.value is None else initial

    def add(left: Value, right: Value) -> Value:
        return binary(ctx, "+", left, right) if function is None else ctx.call(function, [left, right], {})

    iterable = args[0] if args else kwargs["iterable"]
    return IteratorValue(kind, accumulated(ctx, _iterator(ctx, iterable), add, initial), ctx)


@constructs(itertools.filterfalse)
def _filterfalse(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return IteratorValue(kind, filtered(ctx, ctx.realize(args[0]), _iterator(ctx, args[1]), keep=False), ctx)


@constructs(itertools.takewhile, itertools.dropwhile)
def _while(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    steps = elements_of(ctx, _iterator(ctx, args[1]))

    def holds(element: Value) -> bool:
        return ctx.realize(ctx.call(args[0], [element], {})).truth(ctx)

    chosen = itertools.takewhile if kind is itertools.takewhile else itertools.dropwhile
    return IteratorValue(kind, chosen(holds, steps), ctx)


@constructs(itertools.compress)
def _compress(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    given = [*args, *(kwargs[name] for name in ("data", "selectors") if name in kwargs)]
    data, selectors = (elements_of(ctx, _iterator(ctx, given[place])) for place in (0, 1))
    chosen = (value for value, keep in zip(data, selectors, strict=False) if ctx.realize(keep).truth(ctx))
    return IteratorValue(kind, chosen, ctx)


@calls(itertools.tee)
def _tee(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    count = _number(ctx, args[1] if len(args) > 1 else None, 2)
    _demand(ctx, itertools.tee, (), count)
    if count == 0:
        return TupleValue([])  # nothing is asked of what would be copied
    copies = itertools.tee(elements_of(ctx, _iterator(ctx, args[0])), count)
    return TupleValue([IteratorValue(type(copy), copy, ctx) for copy in copies])


def chain_from_iterable_rule(function: object) -> CallRule | None:
    """Give `itertools.chain.from_iterable`, which is a new object at every look-up."""
    if not isinstance(function, types.BuiltinFunctionType) or function.__name__ != "from_iterable":
        return None
    if function.__self__ is not itertools.chain:
        return None

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        return IteratorValue(itertools.chain, chained(ctx, elements_of(ctx, _iterator(ctx, args[0]))), ctx)

    return rule


@constructs(itertools.pairwise)
def _pairwise(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    steps = itertools.pairwise(elements_of(ctx, _iterator(ctx, args[0])))
    return IteratorValue(kind, (TupleValue(list(pair)) for pair in steps), ctx)


@constructs(itertools.groupby)
def _groupby(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    key = ctx.realize(args[1] if len(args) > 1 else kwargs.get("key", Constant(None)))
    by_key = None if isinstance(key, Constant) and key.value is None else key
    return IteratorValue(kind, Groups(ctx, _iterator(ctx, args[0] if args else kwargs["iterable"]), by_key).rows(), ctx)
