"""functools and operator: partial, reduce, operators as functions, getters."""

import functools
import operator

from ..constant import Constant
from ..identities import is_same
from ..python.containers.tuples import TupleValue
from ..python.objects.classes import constructs
from ..python.objects.partials import make_partial
from ..python.operators import binary, compare, unary
from ..refused_arguments import refuse_arguments
from ..rule_tables import CallRule, calls
from ..value import Arguments, CaptureContext, Keywords, Rebuilder, Value, elements_of, unless_refused


@constructs(functools.partial)
def _partial(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return make_partial(ctx, args, kwargs)


@calls(functools.reduce)
def _reduce(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    items = unless_refused(ctx, lambda ctx: ctx.realize(args[1]).iterate(ctx))
    if items is None:
        ctx.throw(TypeError, "reduce() arg 2 must support iteration")
    steps = elements_of(ctx, ctx.realize(items))
    total = args[2] if len(args) > 2 else next(steps, None)
    if total is None:
        ctx.throw(TypeError, "reduce() of empty iterable with no initial value")
    for item in steps:
        total = ctx.call(args[0], [total, item], {})
    return ctx.realize(total)


def _binary_rule(symbol: str, *, inplace: bool) -> CallRule:
    return lambda ctx, args, kwargs: binary(ctx, symbol, args[0], args[1], inplace=inplace)


def _compare_rule(symbol: str) -> CallRule:
    return lambda ctx, args, kwargs: compare(ctx, symbol, args[0], args[1])


def _register_operators() -> None:
    plain = {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": operator.truediv,
        "//": operator.floordiv,
        "%": operator.mod,
        "**": operator.pow,
        "@": operator.matmul,
        "<<": operator.lshift,
        ">>": operator.rshift,
        "&": operator.and_,
        "|": operator.or_,
        "^": operator.xor,
    }
    assigning = {"+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv}
    comparisons = {
        "==": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
    for symbol, function in plain.items():
        calls(function)(_binary_rule(symbol, inplace=False))
    for symbol, function in assigning.items():
        calls(function)(_binary_rule(symbol, inplace=True))
    for symbol, function in comparisons.items():
        calls(function)(_compare_rule(symbol))
    calls(operator.neg)(lambda ctx, args, kwargs: unary(ctx, "-", args[0]))
    calls(operator.pos)(lambda ctx, args, kwargs: unary(ctx, "+", args[0]))
    calls(operator.not_)(lambda ctx, args, kwargs: Constant(not ctx.realize(args[0]).truth(ctx)))
    calls(operator.is_)(lambda ctx, args, kwargs: Constant(is_same(ctx, args[0], args[1])))
    calls(operator.is_not)(lambda ctx, args, kwargs: Constant(not is_same(ctx, args[0], args[1])))
    calls(operator.contains)(lambda ctx, args, kwargs: Constant(ctx.realize(args[0]).contains(ctx, args[1])))
    calls(operator.getitem)(lambda ctx, args, kwargs: ctx.realize(args[0]).get_item(ctx, args[1]))


_register_operators()


@constructs(operator.itemgetter, operator.attrgetter, operator.methodcaller)
def _getter(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    keys = [ctx.realize(arg) for arg in args]
    names = keys if kind is operator.attrgetter else keys[:1] if kind is operator.methodcaller else []
    unexpected = bool(kwargs) and kind is not operator.methodcaller
    if not keys or unexpected or not all(issubclass(name.python_type(), str) for name in names):
        refuse_arguments(ctx, kind, keys, kwargs)
    return GetterValue(kind, keys, kwargs)


class GetterValue(Value):
    """An `operator.itemgetter` or `attrgetter`."""

    always_true = True

    def __init__(self, kind: type, keys: list[Value], keywords: Keywords) -> None:
        self.kind = kind
        self.keys = keys
        self.keywords = keywords  # of the method of a methodcaller

    def python_type(self) -> type:
        """Return the getter's class."""
        return self.kind

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new getter."""
        name = out.fresh()
        parts = [out.value(key) for key in self.keys]
        parts += [f"{key}={out.value(value)}" for key, value in self.keywords.items()]
        out.line(f"{name} = {out.inject(self.kind)}({', '.join(parts)})")
        return name

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Fetch each key, or call the method."""
        if len(args) != 1 or kwargs:
            refuse_arguments(ctx, self.kind("a"), args, kwargs)
        if self.kind is operator.methodcaller:
            return ctx.realize(args[0]).call_method(ctx, str(self.keys[0].constant()), self.keys[1:], self.keywords)
        answers = []
        for key in self.keys:
            value = ctx.realize(args[0])
            if self.kind is operator.itemgetter:
                value = value.get_item(ctx, key)
            else:
                for name in str(key.constant()).split("."):
                    value = ctx.realize(value.get_attr(ctx, name))
            answers.append(ctx.realize(value))
        return answers[0] if len(answers) == 1 else TupleValue(list(answers))
