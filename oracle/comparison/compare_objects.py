"""Python objects compared: classes, constants, containers, identity; in the output and in the state after the call."""

import datetime
import decimal
import math
from collections.abc import Iterator

import numpy

from ..state.children import ADDRESS
from ..state.description import Node
from ..verdict import VerdictKind
from .compare_process_state import process_differences
from .compare_tensors import as_tensor
from .matching import Difference, Match, MatchedOutcomes

FLOAT_SLACK = 1e-5
"""Relative slack for Python floats, which come from `.item()` and carry no reference; far below any real defect."""


def output_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield objects in the output whose class or constant differs from eager's; tensors are judged by value."""
    for match in outcomes.matches:
        if match.part == "values":
            yield from _class_or_constant(match)
            yield from _items(match)


def mutation_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield tensors and arrays that only one side has changed; those that both changed are judged by value."""
    for match in outcomes.matches:
        if match.part == "mutations":
            yield from _one_sided(match)
            yield from _items(match)


def python_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield differences of containers and identity anywhere, and of attributes, cells, globals and classes."""
    counterparts: dict[int, int] = {}
    for match in outcomes.matches:
        if match.part == "python":
            yield from _one_sided(match)
            yield from _items(match)
        if match.part != "values":
            yield from _class_or_constant(match)
        if match.eager is not None and match.actual is not None and match.kind not in (None, "atom"):
            yield from _identity(match, match.eager, match.actual, counterparts)
            yield from _children(match, match.eager, match.actual)
    yield from process_differences(outcomes)


def _one_sided(match: Match) -> Iterator[Difference]:
    changed, changes = ("rebound", "rebinds") if match.binding else ("changed", "changes")
    if match.eager is None:
        sentence = f"was {changed} by the compiled run; eager leaves it alone"
        yield Difference(match.position, match.path, sentence)
    elif match.actual is None:
        yield Difference(match.position, match.path, f"was left alone by the compiled run; eager {changes} it")


def _class_or_constant(match: Match) -> Iterator[Difference]:
    eager, actual = match.eager, match.actual
    if eager is None or actual is None:
        return
    if match.kind is None:
        sentence = f"is {_with_article(actual)}, eager gives {_with_article(eager)}"
        yield Difference(match.position, eager.path, sentence)
    elif match.kind == "atom":
        yield from _constant(match, eager.value, actual.value)


def _constant(match: Match, eager: object, actual: object) -> Iterator[Difference]:
    sentence = f"is {actual!r}, eager gives {eager!r}"
    if isinstance(eager, (float, numpy.floating)) and isinstance(actual, (float, numpy.floating)):
        if eager == actual or (math.isnan(eager) and math.isnan(actual)):
            return
        # A number of NumPy's may be the sum of an array: rounding explains a difference of half its digits.
        of_numpy = isinstance(eager, numpy.floating) and type(eager) is type(actual)
        slack = (
            float(numpy.finfo(type(eager)).eps) ** 0.5
            if isinstance(eager, numpy.floating) and of_numpy
            else FLOAT_SLACK
        )
        kind = VerdictKind.NO_REFERENCE if math.isclose(eager, actual, rel_tol=slack) else VerdictKind.WRONG
        yield Difference(match.position, match.path, sentence, kind, may_round=of_numpy)
    elif not _equal_constants(eager, actual):
        only_there = _differ_in_addresses(eager, actual)
        kind = VerdictKind.NO_REFERENCE if only_there else VerdictKind.WRONG
        yield Difference(match.position, match.path, sentence, kind, may_round=only_there)


def zero_sign_of_numbers(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield numbers of Python's that are zero and have the other sign than eager's."""
    for match in outcomes.matches:
        if match.kind == "atom" and match.eager is not None and match.actual is not None:
            eager, actual = match.eager.value, match.actual.value
            if isinstance(eager, (float, complex)) and eager == actual and repr(eager) != repr(actual):
                yield Difference(match.position, match.path, f"is {actual!r}, eager's is {eager!r}")


def _items(match: Match) -> Iterator[Difference]:
    """Compare arrays of strings and objects item by item: they have no tensor to be judged by."""
    if match.kind not in ("array", "buffer") or match.eager is None or match.actual is None:
        return
    eager, actual = match.eager.value, match.actual.value
    if eager is None or actual is None or eager.shape != actual.shape or eager.dtype != actual.dtype:
        return
    if eager.dtype.hasobject:
        return  # its items have places of their own
    if as_tensor(eager) is None and not (eager == actual).all():
        yield Difference(match.position, match.path, "holds other items than eager's")


def _identity(match: Match, eager: Node, actual: Node, counterparts: dict[int, int]) -> Iterator[Difference]:
    """Require the same objects where they existed before, and the same sharing among new ones."""
    expected, identity = eager.identity, actual.identity
    if expected is None or identity is None or eager.kind in ("tensor", "tuple", "opaque"):
        return
    if (expected < 0) != (identity < 0) or (expected < 0 and expected != identity):
        yield Difference(match.position, eager.path, "is another object than the one eager leaves there")
    elif expected >= 0 and counterparts.setdefault(expected, identity) != identity:
        yield Difference(match.position, eager.path, "is not the object that eager shares here")


def _children(match: Match, eager: Node, actual: Node) -> Iterator[Difference]:
    if match.kind == "iterator" and not (eager.children and actual.children):
        return  # nobody has looked at what the live run's gives
    missing = [name for name in eager.children if name not in actual.children]
    extra = [name for name in actual.children if name not in eager.children]
    for name in missing:
        yield Difference(match.position, name, "is missing; eager has it")
    for name in extra:
        yield Difference(match.position, name, "is extra; eager does not have it")
    if not missing and not extra and list(eager.children) != list(actual.children):
        yield Difference(match.position, eager.path, "has its items in another order than eager's")


def _with_article(node: Node) -> str:
    kind = node.type_name.removeprefix("builtins.")
    return f"{node.value!r} ({kind})" if node.kind == "atom" else f"a {kind}"


def _equal_constants(eager: object, actual: object) -> bool:
    if type(eager) is not type(actual):
        return False
    try:
        equal = bool(eager == actual) or eager is actual or (eager != eager and actual != actual)
        return equal and _form(eager) == _form(actual)
    except (RuntimeError, TypeError, ValueError):  # a user's own `__eq__`
        return False


def _differ_in_addresses(eager: object, actual: object) -> bool:
    """Return whether texts name other addresses, as those of objects that each run makes do, and are equal else."""
    if not (isinstance(eager, str) and isinstance(actual, str)):
        return False
    return ADDRESS.sub("", eager) == ADDRESS.sub("", actual)


def _form(value: object) -> object:
    """Return what equal constants of a class may differ in: digits that are zeros, an end never met, a zone of time."""
    if isinstance(value, decimal.Decimal):
        return value.as_tuple()
    if isinstance(value, range):
        return value.start, value.stop, value.step
    return value.utcoffset() if isinstance(value, datetime.datetime | datetime.time) else None
