"""GuardStep: one row of a guard table, and what each operation of the evaluator in C does."""

from dataclasses import dataclass
from enum import IntEnum


class StepOp(IntEnum):
    """What a step does; the numbers reach the C text by name.  Fetches come first."""

    CONSTANT = 0  # the operand itself
    ATTRIBUTE = 1  # value.operand
    NAMESPACE = 2  # value.__dict__, of a plain namespace
    ITEM = 3  # value[operand]
    CELL = 4  # value.cell_contents
    FETCH = 5  # operand(value)
    TYPE = 6  # type(value) is operand
    IDENTITY = 7  # value is operand
    EQUALS = 8  # of operand's type and equal; zeros by sign, NaN to NaN
    LENGTH = 9  # len(value) == result
    KEYS = 10  # the keys, in order, are extra; operand(value) unless value is exactly a dict
    HAS_KEY = 11  # operand in value
    LACKS_KEY = 12  # operand not in value
    EMPTY_ITEMS = 13  # value[name] is false for every name in operand
    CODE = 14  # value.__code__ is operand or equal to it
    TENSOR = 15  # a tensor of type extra with the metadata; operand(value) where that is not plain to see
    TRUTH = 16  # bool(value) == result
    HAS_ATTRIBUTE = 17  # hasattr(value, operand) == result
    SAME_AS = 18  # value is what slot `result` holds
    DISTINCT = 19  # the slots in operand hold different objects
    STATE = 20  # operand() == extra
    MEMBER = 21  # the MRO of value has extra under operand, a name or (name, after); result 1: nothing, 2: plain data
    MEMBERS = 22  # the class operand has what the rows in extra say: (operand, result, extra) of MEMBER
    PYTHON = 23  # operand(value, *what the slots in extra hold)


LAST_FETCH = StepOp.FETCH
Metadata = tuple[int, int, int, int, int, int, tuple[int, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class GuardStep:
    """One row: value is the slot looked at; result a number that the operation needs.

    metadata: of a tensor, in torch's numbers, for the C evaluator.
    """

    op: StepOp
    value: int
    result: int = 0
    operand: object = None
    extra: object = None
    metadata: Metadata | None = None

    def row(self) -> tuple[object, ...]:
        """Return the plain tuple that the C evaluator reads."""
        return (int(self.op), self.value, self.result, self.operand, self.extra, self.metadata)
