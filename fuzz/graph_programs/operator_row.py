"""One operator of a graph program: a line of text with places, and the table of all of them.

A place is `{x}`, an earlier value, or `{dim}`, an attribute that is drawn to fit the first value.  A place that occurs
twice stands for the same thing.  Nothing here knows which operands fit together: torch is asked, by running the line.
"""

import re
from dataclasses import dataclass

from plumbline.compiler.base.errors import UserError

PLACE = re.compile(r"\{(\w+)\}")

# First letter of a place -> the kind of value; every other name is an attribute.
VALUE_KINDS = {"x": "any", "y": "any", "z": "any", "f": "float", "g": "float", "h": "float", "i": "int", "b": "bool"}


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """One operator.

    name: in signatures of failures and in saved programs.  text: how it is written, an expression or a statement.
    family: of the weights with which rows are drawn.  results: number of values it gives, 0 for a statement.
    draws: whether it draws random numbers.
    """

    name: str
    text: str
    family: str
    results: int = 1
    draws: bool = False

    @property
    def operands(self) -> tuple[str, ...]:
        """Return the places of values, each once, in order."""
        return tuple(place for place in self._places() if is_value(place))

    @property
    def writes(self) -> bool:
        """Return whether it writes to its first value, or changes the form of it."""
        return self.family in ("write", "form")

    @property
    def attributes(self) -> tuple[str, ...]:
        """Return the places of attributes, each once, in order."""
        return tuple(place for place in self._places() if not is_value(place))

    def _places(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(PLACE.findall(self.text)))

    def written(self, operands: tuple[str, ...], attributes: tuple[str, ...]) -> str:
        """Return the line without its assignment."""
        texts = dict(zip((*self.operands, *self.attributes), (*operands, *attributes), strict=True))
        return PLACE.sub(lambda place: texts[place.group(1)], self.text)


def is_value(place: str) -> bool:
    """Return whether a place stands for a value: one letter of a kind, and perhaps a digit."""
    return place[0] in VALUE_KINDS and (len(place) == 1 or place[1:].isdigit())


OPERATORS: dict[str, OperatorRow] = {}


def add_rows(family: str, names: str, text: str, *, results: int = 1, draws: bool = False, suffix: str = "") -> None:
    """Add one row for each name; NAME in the text stands for it, `suffix` tells forms of one operator apart."""
    for name in names.split():
        full = name + suffix
        if full in OPERATORS:
            raise UserError(f"two rows are named {full!r}", hint="give one of them a suffix")
        OPERATORS[full] = OperatorRow(full, text.replace("NAME", name), family, results, draws)
