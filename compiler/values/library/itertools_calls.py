"""The iterators of itertools, as generators over values."""

import itertools
import sys
import types
from collections.abc import Iterator
from typing import Any

from ..constant import Constant
from ..python.containers.iterators import Iterable, IteratorValue, accumulated, chained, filtered, grouped
from ..python.containers.tuples import TupleValue
from ..python.objects.attributes import class_lookup
from ..python.objects.classes import constructs
from ..python.operators import binary
from ..reasons import ARGUMENT_NOT_KNOWN, Break
from ..rule_tables import CallRule, calls
from ..value import Arguments, CaptureContext, Keywords, Value, elements_of
from .conversion_calls import known_argument


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
    chosen: Any = kind
    if kind is itertools.product:
        repeat = _number(ctx, kwargs.get("repeat"), 1)
        _demand(ctx, kind, repeat=repeat)
        pools = [ctx.unpack(arg) for arg in args]
        rows: Iterator[tuple[Value, ...]] = itertools.product(*pools, repeat=repeat)
        parts, options = [TupleValue(pool) for pool in pools], f"repeat={repeat}"
    else:
        iterable, count, *_ = [*args, *(kwargs[name] for name in ("iterable", "r") if name in kwargs), Constant(None)]
        items: list[Any] = ctx.unpack(iterable)
        whole = kind is itertools.permutations and ctx.realize(count).identity() is None
        number = len(items) if whole else _number(ctx, count, 0)
        _demand(ctx, kind, (), number)
        rows = chosen(items, number)
        parts, options = [TupleValue(items)], str(number)
    return IteratorValue(kind, map(_row, rows), ctx, parts=tuple(parts), options=options, advanced=True)


def _row(row: tuple[Value, ...]) -> Value:
    return TupleValue(list(row))


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
    return IteratorValue(kind, map(_row, rows), ctx)


@constructs(itertools.repeat)
def _repeat(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    times = kwargs.get("times", args[1] if len(args) > 1 else None)
    element = args[0] if args else kwargs["object"]
    steps = itertools.repeat(element) if times is None else itertools.repeat(element, _number(ctx, times, 0))
    return IteratorValue(kind, steps, ctx)


def _number_like(value: Value) -> Any:
    """Return a number for an object that can be made one, else what stands for it."""
    kind = value.python_type()
    is_number = any(class_lookup(kind, name)[0] is not None for name in ("__index__", "__int__", "__float__"))
    return 0 if is_number else value.stand_in()


@constructs(itertools.count)
def _count(ctx: CaptureContext, kind: Any, args: Arguments, kwargs: Keywords) -> Value:
    start = args[0] if args else kwargs.get("start")
    step = args[1] if len(args) > 1 else kwargs.get("step")
    given, named = [ctx.realize(arg) for arg in args], {name: ctx.realize(value) for name, value in kwargs.items()}
    try:  # it refuses what is not a number
        kind(*map(_number_like, given), **{name: _number_like(value) for name, value in named.items()})
    except TypeError as error:
        ctx.throw(TypeError, *error.args)
    except Break:
        pass
    return IteratorValue(kind, _Counted(ctx, start or Constant(0), step or Constant(1)), ctx)


class _Counted(Iterator[Value]):
    """The steps of itertools.count(): the next number is computed before this one is given."""

    def __init__(self, ctx: CaptureContext, start: Value, step: Value) -> None:
        self.ctx = ctx
        self.step, self.number = ctx.realize(step), ctx.realize(start)
        kinds = {self.step.python_type(), self.number.python_type()}
        if kinds != {int} and all(issubclass(kind, int) for kind in kinds):
            self._count_as_in_c()

    def _count_as_in_c(self) -> None:
        """Count whole numbers in steps of one as numbers of C: whatever class they are of, no method of it is asked."""
        if known_argument(self.ctx, self.step, "step") != 1:
            return
        number = self.number
        if number.python_type() is not int:
            start: Any = known_argument(self.ctx, number, "start")
            number = Constant(int(start))
        known: Any = number.constant() if number.is_constant() else 0
        if abs(known) < sys.maxsize:
            self.step, self.number = Constant(1), number

    def __next__(self) -> Value:
        number, self.number = self.number, self.ctx.realize(binary(self.ctx, "+", self.number, self.step))
        return number


@constructs(itertools.cycle)
def _cycle(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return IteratorValue(kind, itertools.cycle(elements_of(ctx, _iterator(ctx, args[0]))), ctx)


@constructs(itertools.starmap)
def _starmap(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    def result(row: Value) -> Value:
        return ctx.call(args[0], ctx.unpack(row), {})

    return IteratorValue(kind, map(result, elements_of(ctx, _iterator(ctx, args[1]))), ctx)


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

    def chosen(selector: Value) -> bool:
        return selector.truth(ctx)

    return IteratorValue(kind, itertools.compress(data, map(chosen, selectors)), ctx)


@calls(itertools.tee)
def _tee(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    count = _number(ctx, args[1] if len(args) > 1 else None, 2)
    _demand(ctx, itertools.tee, (), count)
    if count == 0:
        return TupleValue([])  # nothing is asked of what would be copied
    given = ctx.realize(args[0])
    if isinstance(given, IteratorValue) and given.kind is _TEE:  # what it gives is kept by all of them
        copies = itertools.tee(given.steps, count)
        return TupleValue([given if copy is given.steps else IteratorValue(_TEE, copy, ctx) for copy in copies])
    if class_lookup(given.python_type(), "__copy__")[0] is not None:
        raise Break(ARGUMENT_NOT_KNOWN, "itertools.tee of an iterator that can copy itself")
    return TupleValue([IteratorValue(_TEE, copy, ctx) for copy in itertools.tee(Iterable(ctx, given), count)])


_TEE: type = type(itertools.tee(())[0])


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
    return IteratorValue(kind, map(_row, steps), ctx)


@constructs(itertools.groupby)
def _groupby(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    key = ctx.realize(args[1] if len(args) > 1 else kwargs.get("key", Constant(None)))
    by_key = None if isinstance(key, Constant) and key.value is None else key
    return IteratorValue(kind, grouped(ctx, _iterator(ctx, args[0] if args else kwargs["iterable"]), by_key), ctx)
