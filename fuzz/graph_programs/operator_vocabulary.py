"""The whole vocabulary of graph programs: every file of rows, in one list."""

from . import autograd_rows, layer_rows, pointwise_rows, reduction_rows, shape_rows, writing_rows  # noqa: F401 - fill OPERATORS
from .operator_row import OPERATORS, OperatorRow

FAMILY_WEIGHTS = {
    "pointwise": 6,
    "binary": 6,
    "numbers": 6,
    "neutral": 3,
    "cast": 4,
    "creation": 2,
    "random": 0.15,
    "view": 7,
    "move": 4,
    "sort": 1,
    "index": 4,
    "reduction": 7,
    "scan": 2,
    "layer": 3,
    "loss": 1,
    "write": 6,
    "form": 1,
    "complex": 0.7,
    "autograd": 1.2,
    "counting": 0.4,
}
"""How often each family is drawn; within a family every row is as likely as any other."""


VOCABULARY = OPERATORS  # filled by the imports above


def rows_by_family() -> dict[str, tuple[OperatorRow, ...]]:
    """Return the rows of each family of the weights."""
    return {family: tuple(row for row in OPERATORS.values() if row.family == family) for family in FAMILY_WEIGHTS}
