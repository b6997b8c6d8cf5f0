"""The meaning of a guard table, step by step in Python: what the evaluator in C must agree with."""

import math
from collections.abc import Callable

from plumbline.compiler.frontend.guard_table import (
    GUARD_ERRORS,
    LAST_FETCH,
    GuardTable,
    Op,
    PythonCheck,
    PythonFetch,
    Step,
)
from plumbline.compiler.values.guard import PLAIN, look_up, member_found


class PythonEvaluator:
    """The meaning of a table: the body's result on slots `passed`, or `miss` if a step fails or cannot be done."""

    def __init__(self, table: GuardTable, passed: tuple[int, ...], body: Callable[..., object], miss: object) -> None:
        self.table, self.passed, self.body, self.miss = table, passed, body, miss

    def __call__(self, *args: object) -> object:
        """Check, then run the body."""
        slots = list(args)
        try:
            for step in self.table.steps:
                if step.op <= LAST_FETCH:
                    slots.append(_fetched(step, slots))
                elif not _holds(step, slots):
                    return self.miss
        except GUARD_ERRORS:
            return self.miss
        return self.body(*(slots[slot] for slot in self.passed))


def _fetched(step: Step, slots: list[object]) -> object:
    if step.op is Op.CONSTANT:
        return step.operand
    base = slots[step.value]
    if step.op is Op.NAMESPACE:
        return base.__dict__
    if step.op is Op.ITEM:
        return base[step.operand]
    if step.op is Op.FETCH:
        assert isinstance(step.operand, PythonFetch)
        return step.operand(base)
    assert isinstance(step.operand, str)
    return getattr(base, step.operand)


def _holds(step: Step, slots: list[object]) -> bool:
    value = slots[step.value] if step.value >= 0 else None
    return bool(_MEANINGS[step.op](step, value, slots))


def _asked(step: Step, value: object, slots: list[object]) -> bool:
    assert isinstance(step.operand, PythonCheck)
    others = step.extra if step.op is Op.PYTHON else ()
    assert isinstance(others, tuple)
    return step.operand(value, *(slots[other] for other in others))


def _is_equal(step: Step, value: object, _: list[object]) -> bool:
    expected = step.operand
    if type(value) is not type(expected):
        return False
    if isinstance(value, float) and isinstance(expected, float):
        if math.isnan(expected):
            return math.isnan(value)
        return value == expected and math.copysign(1.0, value) == math.copysign(1.0, expected)
    return bool(value == expected)


def _are_distinct(step: Step, _: object, slots: list[object]) -> bool:
    positions = step.operand
    assert isinstance(positions, tuple)
    return len({id(slots[position]) for position in positions}) == len(positions)


def _has_member(step: Step, value: object, _: list[object]) -> bool:
    if not isinstance(value, type):
        return False
    name, after = step.operand if isinstance(step.operand, tuple) else (step.operand, None)
    found = look_up(value, name, after)[1]
    return member_found(found) is PLAIN if step.result == 2 else found is step.extra


_Meaning = Callable[[Step, object, list[object]], object]
_MEANINGS: dict[Op, _Meaning] = {
    Op.TYPE: lambda step, value, _: type(value) is step.operand,
    Op.IDENTITY: lambda step, value, _: value is step.operand,
    Op.EQUALS: _is_equal,
    Op.LENGTH: lambda step, value, _: len(value) == step.result,
    Op.KEYS: _asked,
    Op.HAS_KEY: lambda step, value, _: step.operand in value,
    Op.LACKS_KEY: lambda step, value, _: step.operand not in value,
    Op.EMPTY_ITEMS: lambda step, value, _: not any(value[name] for name in step.operand),
    Op.MEMBER: _has_member,
    Op.CODE: lambda step, value, _: value.__code__ == step.operand,
    Op.TENSOR: _asked,
    Op.TRUTH: lambda step, value, _: bool(value) == bool(step.result),
    Op.HAS_ATTRIBUTE: lambda step, value, _: hasattr(value, str(step.operand)) == bool(step.result),
    Op.SAME_AS: lambda step, value, slots: value is slots[step.result],
    Op.DISTINCT: _are_distinct,
    Op.STATE: lambda step, _, __: step.operand() == step.extra,
    Op.PYTHON: _asked,
}
