"""Draws from Python's `random`: numbers that are drawn before the graph runs, in the program's order.

A number drawn is not known while capturing, so it is a `DeferredNumber`: the graph goes on while it only meets tensors
in arithmetic, and whatever needs the number itself breaks there. Where the original code runs after all, the
generators are put back first.
"""

import random
import types
from dataclasses import dataclass
from typing import Any

import torch

from ...constant import MethodOf
from ...guard import GuardKind, Member, look_up, member_found
from ...python.objects.instances import OpaqueValue
from ...reasons import RANDOM_STATE, Break
from ...rule_tables import CallRule, wraps_type
from ...source import Injected, Source
from ...value import Arguments, CaptureContext, Keywords, Value
from .deferred_numbers import DeferredNumber

_NAMES = (
    *("random", "uniform", "randint", "randrange", "choice", "triangular", "gauss", "normalvariate", "expovariate"),
    *("betavariate", "gammavariate", "lognormvariate", "vonmisesvariate", "paretovariate", "weibullvariate"),
    "getrandbits",
)
_DRAWING: dict[object, str] = {vars(random.Random).get(name): name for name in _NAMES if name in vars(random.Random)}
_SHIPPED = {name: look_up(random.Random, name)[1] for name in _NAMES}
_LARGEST = 2**63


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw, at entry: a method of a generator with arguments that are known."""

    method: str
    args: tuple[object, ...]
    kwargs: dict[str, object]

    def __call__(self, generator: random.Random) -> torch.Tensor:
        """Draw, and give the number as a tensor of no dimension."""
        number = getattr(generator, self.method)(*self.args, **self.kwargs)
        return torch.tensor(number, dtype=torch.float64 if type(number) is float else torch.int64)


class RandomValue(OpaqueValue):
    """A `random.Random` from outside."""

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Bind a method that draws."""
        if name in _NAMES:
            return MethodOf(self, name)
        return super().get_attr(ctx, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Draw by a method written in C, or one that draws."""
        return drawn(ctx, self, name, args, kwargs) if name in _NAMES else super().call_method(ctx, name, args, kwargs)


@wraps_type(random.Random)
def _generator(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.TYPE, random.Random)
    return RandomValue(value, source)


def drawing_rule(function: object) -> CallRule | None:
    """Give the methods of `random.Random` in Python that draw a number."""
    name = _DRAWING.get(function, "") if isinstance(function, types.FunctionType) else ""
    if not name:
        return None

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        return drawn(ctx, ctx.realize(args[0]), name, args[1:], kwargs)

    return rule


def drawn(ctx: CaptureContext, owner: Value, name: str, args: Arguments, kwargs: Keywords) -> Value:
    """Return the number that a draw gives; Break where it is no number, or may raise."""
    values = [ctx.realize(arg) for arg in args]
    named = {key: ctx.realize(value) for key, value in kwargs.items()}
    known = all(value.is_constant() for value in (*values, *named.values()))
    if not isinstance(owner, RandomValue) or owner.source is None or not known:
        raise Break(RANDOM_STATE, f"random.{name}")
    if not _is_as_shipped(ctx, owner.real):
        raise Break(RANDOM_STATE, f"random.{name} of a generator whose methods were replaced")
    draw = Draw(name, tuple(v.constant() for v in values), {key: v.constant() for key, v in named.items()})
    real: Any = owner.real
    copy = random.Random()
    copy.setstate(real.getstate())
    try:
        kinds = {type(number) for number in _possible(draw, copy)}
        sample = draw(copy)
    except Exception:  # what it raises, the program sees where it draws
        raise Break(RANDOM_STATE, f"random.{name}") from None
    kind = kinds.pop()
    if kinds or kind not in (int, float):
        raise Break(RANDOM_STATE, f"random.{name} of other things than numbers")
    scalar = ctx.graph.draw(owner, draw, sample, f"random.{name}()")
    if scalar is None:
        raise Break(RANDOM_STATE, f"random.{name}")
    return DeferredNumber(scalar, sample, kind)


def _is_as_shipped(ctx: CaptureContext, generator: object) -> bool:
    """Return whether the methods that draw are Python's own, guarded: a test may have patched them."""
    for name in _NAMES:
        place = Member(name, None, member_found(_SHIPPED[name]))
        ctx.guards.add(Injected(random.Random), GuardKind.MEMBER, place)
    plain = not set(_NAMES) & set(vars(generator))
    return plain and all(look_up(random.Random, name)[1] is _SHIPPED[name] for name in _NAMES)


def _possible(draw: Draw, copy: random.Random) -> tuple[object, ...]:
    """Return numbers of every kind that a draw may give."""
    if draw.method == "choice":
        choices: Any = draw.args[0]
        numbers: tuple[object, ...] = tuple(choices)
        if any(type(number) is int and abs(number) >= _LARGEST for number in numbers) or not numbers:
            raise ValueError
        return numbers
    return (getattr(copy, draw.method)(*draw.args, **draw.kwargs),)


class GeneratorsBefore:
    """The states of some generators, before a graph's draws."""

    def __init__(self, *generators: random.Random) -> None:
        self.states = [(generator, generator.getstate()) for generator in generators]

    def put_back(self) -> None:
        """Put the generators back: the original code draws again."""
        for generator, state in self.states:
            generator.setstate(state)
