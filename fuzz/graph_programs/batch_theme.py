"""What the programs of a batch are drawn from: a few rows, dtypes and values, so that those that need each other meet.

The idea is swarm testing (Groce and others, 2012): what needs three things of one kind together is met by programs of
few kinds long before it is met among all of them.
"""

import random
from dataclasses import dataclass, field
from typing import TypeVar

from .inputs import FLOAT_DTYPES, INPUT_DTYPES, LAYOUTS, VALUES
from .operator_attributes import FLOATS
from .operator_row import OperatorRow
from .operator_vocabulary import FAMILY_WEIGHTS, rows_by_family

_Kind = TypeVar("_Kind", str, int)
Rows = dict[str, tuple[OperatorRow, ...]]
_ALL_ROWS: Rows = rows_by_family()
_FAMILIES, _WEIGHTS = tuple(FAMILY_WEIGHTS), tuple(FAMILY_WEIGHTS.values())
MOST_ELEMENTS = 3000
RANKS = (0, 1, 1, 2, 2, 2, 3, 4)
SIZES = (1, 2, 3, 0, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65)
_NORMAL = ("normal",) * len(VALUES)
_CONTIGUOUS = ("contiguous",) * 9

_DTYPES: tuple[tuple[str, ...], ...] = (
    ("float32",), ("float32", "float64"), ("float16", "bfloat16", "float32"), ("int64", "int32", "float32"),
    ("uint8", "int8", "int16"), ("bool", "int64", "float32"), FLOAT_DTYPES,
)  # fmt: skip
_VALUES: tuple[tuple[str, ...], ...] = (("special",), ("ties", "zeros"), ("wide", "special"), ("positive",))
_LAYOUTS: tuple[tuple[str, ...], ...] = (("contiguous",), LAYOUTS[1:])
_RANKS: tuple[tuple[int, ...], ...] = ((1,), (2,), (2, 3), (3, 4), (0, 1))
_SIZES: tuple[tuple[int, ...], ...] = ((1, 1, 2, 3), (2, 3, 4), (0, 1, 2), (15, 16, 17, 33), (1, 64, 65))
_DECIMALS = ("0.1", "0.3", "0.7", "-0.1", "1.1", "0.05")  # which no binary type holds
_LIMITS = ("127", "128", "255", "256", "-1", "32768", "2147483648")
_LITERALS: tuple[tuple[str, ...], ...] = (
    ("0", "1", "True", "False", "1.0", "0.0", "-0.0"), ("1", "True", "1.0"), ("2", "2.0", "-1", "-1.0"),
    ("0.1", "3.7", "-0.5", "65504.0", "1e-40"), _DECIMALS, FLOATS, _LIMITS,
)  # fmt: skip
_NUMBERS_THAT_MEET: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (("float16", "bfloat16"), ("ties", "positive", "normal"), _DECIMALS),  # quotients next to whole numbers
    (("float32", "float64"), ("ties", "positive"), _DECIMALS),
    (("uint8", "int8", "int16"), ("special", "wide"), _LIMITS),
    (("int64", "int32"), ("special", "wide"), ("2", "3", "-3", "0.5", "1e18", "-1")),
    (("float16", "float32"), ("special",), ("65504.0", "1e-40", "-0.0", "0.1", "float('inf')", "float('nan')")),
)


@dataclass(frozen=True, slots=True)
class Theme:
    """What may be drawn, and how often.

    rows: by family.  dtypes, values, layouts: of inputs, each as likely as it is often there.  ranks: numbers of
    dimensions.  sizes: of dimensions.  literals: numbers as they are written; all kinds where there is none.  sharing:
    share of inputs that have another's memory.  gradients: share of float inputs that want one.  repeats: share of
    steps that are an earlier one again, or nearly.  back: share of indices that count from the end.  through: share of
    new views that are written to at once.  later: share of inputs with another's memory that have their own at the
    first call.  sized: share of programs that return the shapes of their arguments, twice that where sizes change.
    elements: that a value may have at the first call; an input, a quarter of it.
    """

    rows: Rows = field(default_factory=lambda: _ALL_ROWS)
    dtypes: tuple[str, ...] = INPUT_DTYPES
    values: tuple[str, ...] = (*_NORMAL, *VALUES)
    layouts: tuple[str, ...] = (*_CONTIGUOUS, *LAYOUTS)
    ranks: tuple[int, ...] = RANKS
    sizes: tuple[int, ...] = SIZES
    literals: tuple[str, ...] = ()
    sharing: float = 0.12
    gradients: float = 0.25
    repeats: float = 0.05
    back: float = 0.2
    through: float = 0.1
    later: float = 0.33
    sized: float = 0.1
    elements: int = MOST_ELEMENTS

    @property
    def weights(self) -> list[float]:
        """Return how often each family is drawn, in the order of the rows."""
        return [FAMILY_WEIGHTS[family] for family in self.rows]


EVERYTHING = Theme()
_OVERLAPPING = tuple(row for row in _ALL_ROWS["write"] if row.name in ("write_overlap", "copy_overlap"))
_OF_MEMORY = _OF_NUMBERS = 0.25  # shares of themes
_OF_SIZE = 0.1


def drawn_theme(draw: random.Random) -> Theme:
    """Return a few rows of a few families and a few kinds of inputs.  Half of the themes write."""
    kind = draw.random()
    if kind < _OF_MEMORY:
        return _theme_of_memory(draw)
    if kind > 1 - _OF_NUMBERS:
        return _theme_of_numbers(draw)
    if kind > 1 - _OF_NUMBERS - _OF_SIZE:
        return _theme_of_size(draw)
    families = set(draw.choices(_FAMILIES, _WEIGHTS, k=draw.choice((2, 3, 4))))
    if draw.random() < 0.5:
        families |= {"write", "view"} if draw.random() < 0.5 else {"write"}
    return Theme(
        _few_rows(draw, families, draw.choice((2, 3, 5, 8))),
        dtypes=_perhaps(draw, EVERYTHING.dtypes, _DTYPES),
        values=_perhaps(draw, EVERYTHING.values, _VALUES),
        layouts=_perhaps(draw, EVERYTHING.layouts, _LAYOUTS),
        ranks=_perhaps(draw, EVERYTHING.ranks, _RANKS),
        sizes=_perhaps(draw, EVERYTHING.sizes, _SIZES),
        literals=_perhaps(draw, EVERYTHING.literals, _LITERALS),
        sharing=draw.choice((0.0, 0.12, 0.5)),
        gradients=draw.choice((0.0, 0.25, 0.7)),
        repeats=draw.choice((0.0, 0.15, 0.4)),
        back=draw.choice((0.2, 1.0)),
        through=draw.choice((0.0, 0.6)),
    )


def drawn_refusing_theme(draw: random.Random) -> Theme:
    """Return a theme for a program that eager refuses: half of them read and write one memory."""
    return _theme_of_memory(draw) if draw.random() < 0.5 else drawn_theme(draw)


def _theme_of_memory(draw: random.Random) -> Theme:
    """Return a theme of writes and views of arguments that share memory, now or from the second call on."""
    families = {
        "write",
        "view",
        draw.choice(("form", "view")),
        draw.choice(("reduction", "pointwise", "move", "index")),
    }
    return Theme(
        _few_rows(draw, families, 6),
        dtypes=draw.choice((("float32",), ("int64", "float32"), ("bool", "uint8"))),
        values=("normal",),
        layouts=("contiguous", "contiguous", "transposed"),
        ranks=draw.choice(_RANKS),
        sizes=draw.choice(_SIZES),
        sharing=0.8,
        gradients=draw.choice((0.0, 0.0, 0.5)),
        through=0.4,
        later=draw.choice((0.1, 0.8)),
        sized=0.4 if "form" in families else 0.1,
    )


def _theme_of_numbers(draw: random.Random) -> Theme:
    """Return a theme of rounding: one kind of dtype, elements at its ends, and numbers of the same kind."""
    families = {"numbers", draw.choice(("pointwise", "reduction", "cast", "binary"))}
    dtypes = draw.choice((*_DTYPES[1:6], ("float16", "bfloat16")))
    values, literals = draw.choice((*_VALUES, ("normal", "special"))), draw.choice(_LITERALS)
    if draw.random() < 0.5:
        dtypes, values, literals = draw.choice(_NUMBERS_THAT_MEET)
    return Theme(
        _few_rows(draw, families, 10),
        dtypes=dtypes,
        values=values,
        ranks=(1, 1, 2),
        sizes=draw.choice(((2, 3), (15, 16, 17, 33), (64, 65))),
        literals=literals,
        sharing=0.0,
        gradients=draw.choice((0.0, 0.0, 0.5)),
        repeats=draw.choice((0.0, 0.3)),
    )


def _theme_of_size(draw: random.Random) -> Theme:
    """Return a theme of rows that are worth wide vectors, tiles and threads, with gradients of what is made of them."""
    families = {"pointwise", "reduction", draw.choice(("binary", "cast", "move", "view", "layer"))}
    return Theme(
        _few_rows(draw, families & set(_FAMILIES), 8),
        dtypes=draw.choice((("float32",), ("float32", "float64"), ("bfloat16", "float32"), ("float32", "int64"))),
        values=draw.choice((("normal",), ("normal", "positive"), ("ties", "normal"))),
        ranks=(1, 2, 2, 3),
        sizes=draw.choice(((200, 300), (64, 257, 3), (16, 31, 128), (1000, 7, 40))),
        sharing=0.0,
        gradients=draw.choice((0.25, 0.8)),
        repeats=draw.choice((0.0, 0.15)),
        elements=80 * MOST_ELEMENTS,
    )


def _few_rows(draw: random.Random, families: set[str], few: int) -> Rows:
    some = {one: draw.sample(_ALL_ROWS[one], min(few, len(_ALL_ROWS[one]))) for one in _FAMILIES if one in families}
    return {family: tuple(rows) for family, rows in some.items()}


def _perhaps(draw: random.Random, usual: tuple[_Kind, ...], others: tuple[tuple[_Kind, ...], ...]) -> tuple[_Kind, ...]:
    return usual if draw.random() < 0.5 else draw.choice(others)
