"""Sums of which one term is not zero: the sum over classes of a gradient that only the class of a row has.

Behind cross entropy, whose gradient is one number per row, log_softmax wants the sum over all classes.  Joined into one
loop it is `sum over r of (r == place ? value : 0)`, which is `value` where the place is one of r's, and zero elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from ..loops.body import Scalar, ScalarBuilder, walk
from ..loops.ir import Loop, LoopProgram, LoopStore, index_symbols
from ..loops.phases import plan_phases
from ..symbolic.expr import Expr, Symbol


def single_terms(program: LoopProgram) -> LoopProgram:
    """Return the program with such sums as their one term, bit for bit; a loop left without a sum is a plain one."""
    steps = tuple(_simplified(step) if isinstance(step, Loop) else step for step in program.steps)
    return replace(program, steps=steps)


def _simplified(loop: Loop) -> Loop:
    if len(loop.reduced) != 1 or not any(each.name == "reduce" for each in loop.scalars()):
        return loop
    inner, builder = plan_phases(loop).inner, ScalarBuilder()
    made: dict[int, Scalar] = {}
    terms = {id(each): term for each in loop.scalars() if (term := _term(each, loop.reduced[0], inner))}
    if not terms:
        return loop
    for scalar in walk(store.value for store in loop.stores):
        term = terms.get(id(scalar))
        if term is not None:
            made[id(scalar)] = term.written(builder, made)
        else:
            args = tuple(made[id(arg)] for arg in scalar.args)
            made[id(scalar)] = builder.make(scalar.name, args, scalar.dtype, scalar.detail, scalar.origin)
    stores = tuple(LoopStore(store.access, made[id(store.value)], store.whole) for store in loop.stores)
    if any(each.name in ("reduce", "scan") for each in walk(store.value for store in stores)):
        return Loop(loop.name, loop.kept, loop.reduced, stores, loop.origins)
    if all(index_symbols(store.access) >= set(loop.reduced) for store in stores):
        return Loop(loop.name, (*loop.kept, *loop.reduced), (), stores, loop.origins)
    return loop  # what is stored once per row needs a loop that reduces


@dataclass(frozen=True, slots=True)
class _Term:
    """The one term of a sum over a variable.

    place: where the variable has to be.  conditions: under which the term is there, besides.
    """

    place: Scalar
    variable: Symbol
    conditions: tuple[Scalar, ...]
    value: Scalar

    def written(self, b: ScalarBuilder, made: Mapping[int, Scalar]) -> Scalar:
        """Return the sum; made: what has become of values below it, by id."""
        place, value = made[id(self.place)], made[id(self.value)]
        held = b.op("ge", place, b.constant(0, place.dtype))
        held = b.op("bit_and", held, b.op("lt", place, b.constant(self.variable.size, place.dtype)))
        for condition in self.conditions:
            held = b.op("bit_and", held, made[id(condition)])
        zero = b.constant(0, value.dtype)
        # the sum of minus zero and other zeros is zero
        return b.op("add", b.op("where", held, value, zero), zero)


def _term(scalar: Scalar, variable: Symbol, inner: frozenset[int]) -> _Term | None:
    is_sum = scalar.name == "reduce" and scalar.kind == "sum" and scalar.dtype != torch.bool
    if not is_sum or scalar.args[0].name != "where":
        return None
    condition, value, other = scalar.args[0].args
    if other.name != "constant" or other.detail != 0 or value.dtype != scalar.dtype or id(value) in inner:
        return None
    places, conditions = [], []
    for leaf in _conjuncts(condition):
        if id(leaf) not in inner:
            conditions.append(leaf)
        elif (place := _place_of(leaf, variable, inner)) is not None:
            places.append(place)
        else:
            return None
    if len(places) != 1:
        return None
    return _Term(places[0], variable, tuple(conditions), value)


def _conjuncts(condition: Scalar) -> list[Scalar]:
    if condition.name != "bit_and":
        return [condition]
    return [leaf for arg in condition.args for leaf in _conjuncts(arg)]


def _place_of(condition: Scalar, variable: Symbol, inner: frozenset[int]) -> Scalar | None:
    """Return what the variable has to be equal to; None where the condition is another one."""
    if condition.name != "eq":
        return None
    for index, place in (condition.args, condition.args[::-1]):
        plain = index.name == "index" and index.expression == Expr(((variable, 1),), 0)
        if plain and index.dtype == torch.int64 and id(place) not in inner:  # a narrower one may have wrapped
            return place
    return None
