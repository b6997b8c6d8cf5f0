"""Attributes of drawn operators, as the text that stands in the program; each fits the first operand.

A drawer returns None where the operand admits no such attribute.  Wrong ones are welcome in small numbers: a call that
eager refuses is a program too.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch

from .inputs import DTYPES, FLOAT_DTYPES, INT_DTYPES

INTEGERS = (0, 1, -1, 2, 3, -2, 5, 7, 8, 10, 31, 63, 100, 127, -128, 255)
FLOATS = ("0.0", "1.0", "-1.0", "0.5", "2.0", "-0.5", "0.1", "-0.0", "1e-3", "3.7", "1e10", "1e-40",
          "float('inf')", "-float('inf')", "float('nan')")  # fmt: skip
LOOKALIKES = {
    "1": ("True", "1.0"), "True": ("1", "1.0"), "1.0": ("1", "True"), "False": ("0", "0.0"), "-1": ("-1.0",),
    "0": ("False", "0.0", "-0.0"), "0.0": ("-0.0", "0"), "-0.0": ("0.0", "0"), "2": ("2.0",), "2.0": ("2",),
    "-1.0": ("-1",),
}  # fmt: skip
"""Numbers that are equal to one another, or nearly, and give other results."""
NUMBER_FORMS = ("{n}", "{n}", "{n}", "-{n}", "({n} * 2)", "({n} + 1)", "({n} - 1)", "abs({n})", "({n} % 3)",
                "({n} // 2)", "({n} / 2)", "max({n}, 1)", "min({n}, 2)", "float({n})", "int({n})", "({n} ** 2)",
                "({n} > 1)", "round({n})", "divmod({n}, 3)[1]")  # fmt: skip


@dataclass(frozen=True, slots=True)
class AttributeChoice:
    """What an attribute may depend on: the generator, the first operand, and names of Python numbers in scope.

    names: expressions that stand for the first operand, for sizes read from it.  literals: numbers to choose from, any
    where there is none.  back: share of indices that may count from the end.
    """

    draw: random.Random
    first: torch.Tensor
    first_name: str
    numbers: tuple[str, ...] = ()
    open_sizes: bool = False
    literals: tuple[str, ...] = ()
    back: float = 0.2


Drawer = Callable[[AttributeChoice], str | None]


def drawn_attribute(place: str, choice: AttributeChoice) -> str | None:
    """Return the text for a place such as `dim` or `dim2`, None where the operand admits none."""
    return DRAWERS[place.rstrip("0123456789")](choice)


def _dim(choice: AttributeChoice) -> str | None:
    dims = choice.first.dim()
    return str(choice.draw.randrange(-dims, dims)) if dims else choice.draw.choice((None, None, "0", "-1"))


def _new_dim(choice: AttributeChoice) -> str:
    return str(choice.draw.randint(-choice.first.dim() - 1, choice.first.dim()))


def _dims(choice: AttributeChoice) -> str | None:
    dims = choice.first.dim()
    if not dims:
        return choice.draw.choice(("()", "0", "-1"))
    chosen = sorted(choice.draw.sample(range(dims), choice.draw.randint(0 if dims < 2 else 1, dims)))
    signed = tuple(dim - dims if choice.draw.random() < 0.4 else dim for dim in chosen)
    return str(signed)


def _flag(choice: AttributeChoice) -> str:
    return choice.draw.choice(("True", "False"))


def _number(choice: AttributeChoice) -> str:
    draw = choice.draw
    if choice.numbers and draw.random() < 0.75:
        return draw.choice(NUMBER_FORMS).format(n=draw.choice(choice.numbers))
    if choice.open_sizes and choice.first.dim() and draw.random() < 0.3:
        return f"{choice.first_name}.shape[{draw.randrange(choice.first.dim())}]"
    if choice.literals and draw.random() < 0.9:
        return draw.choice(choice.literals)
    if draw.random() < 0.1:
        return draw.choice(("True", "False"))
    return (
        str(draw.choice(INTEGERS[:8] if draw.random() < 0.7 else INTEGERS))
        if draw.random() < 0.5
        else draw.choice(FLOATS[:9] if draw.random() < 0.7 else FLOATS)
    )


def _divisor(choice: AttributeChoice) -> str:
    """Return a number, none so small that the remainder depends on the library that eager's kernel calls."""
    number = _number(choice).replace("1e-40", "1e-3")
    if any(name in number for name in choice.numbers):
        return f"({number} if abs({number}) > 1e-3 or {number} == 0 else 2)"
    return number


def _exponent(choice: AttributeChoice) -> str:
    """Return a number, none so large that whether it is odd depends on the loop of eager's kernel: 1e10 - 1."""
    return _number(choice).replace("1e10", "1e3")


def _positive(choice: AttributeChoice) -> str:
    if choice.numbers and choice.draw.random() < 0.5:
        return f"(abs({choice.draw.choice(choice.numbers)}) + 0.5)"
    return choice.draw.choice(("0.5", "1.0", "2.0", "0.1", "3"))


def _whole(choice: AttributeChoice) -> str:
    if choice.numbers and choice.draw.random() < 0.5:
        return choice.draw.choice(("int({n})", "int({n}) + 1", "(int({n}) % 4)")).format(
            n=choice.draw.choice(choice.numbers)
        )
    return str(choice.draw.choice((0, 1, 2, 3, -1, -2, 5)))


def _dtype(choice: AttributeChoice) -> str:
    complex_too = ("complex64",) if choice.draw.random() < 0.05 else ()
    return f"torch.{choice.draw.choice((*DTYPES, *complex_too))}"


def _float_dtype(choice: AttributeChoice) -> str:
    return f"torch.{choice.draw.choice(FLOAT_DTYPES)}"


def _int_dtype(choice: AttributeChoice) -> str:
    return f"torch.{choice.draw.choice(INT_DTYPES)}"


def _perm(choice: AttributeChoice) -> str | None:
    dims = list(range(choice.first.dim()))
    choice.draw.shuffle(dims)
    return str(tuple(dims)) if len(dims) > 1 else None


def _view_shape(choice: AttributeChoice) -> str:
    shape, draw = tuple(choice.first.shape), choice.draw
    shapes: list[tuple[int, ...]] = [(-1,), (1, *shape), (*shape, 1), shape]
    if len(shape) > 1:
        shapes += [(shape[0] * shape[1], *shape[2:]), (*shape[1:], shape[0]), (shape[0], -1), (-1, shape[-1])]
    if shape and shape[-1] and shape[-1] % 2 == 0:
        shapes.append((*shape[:-1], shape[-1] // 2, 2))
    if shape and shape[0] and shape[0] % 2 == 0:
        shapes.append((2, shape[0] // 2, *shape[1:]))
    if choice.open_sizes:
        shapes = [(-1,), (1, *shape[:0], -1)]
    return str(draw.choice(shapes))


def _expand_shape(choice: AttributeChoice) -> str:
    lead = choice.draw.choice(((2,), (3,), (1,), (), (2, 2), (0,)))
    kept = tuple(choice.draw.choice((2, 3)) if size == 1 and choice.draw.random() < 0.7 else -1
                 for size in choice.first.shape)  # fmt: skip
    return str((*lead, *kept))


def _size_index(choice: AttributeChoice) -> str | None:
    """Return an index that fits the first dimension."""
    size = choice.first.shape[0] if choice.first.dim() else 0
    return str(choice.draw.randrange(-size, size)) if size else None


def _slice(choice: AttributeChoice) -> str | None:
    """Return a slice of one dimension."""
    draw = choice.draw
    if not choice.first.dim():
        return None
    begin, end, step = (
        draw.choice(("", "1", "-2", "2", "0")),
        draw.choice(("", "", "-1", "3", "100")),
        draw.choice(("", "", ":2", ":3")),
    )
    return f"{begin}:{end}{step}"


def _slices(choice: AttributeChoice) -> str | None:
    """Return a basic index over several dimensions."""
    dims, draw = choice.first.dim(), choice.draw
    if not dims:
        return draw.choice(("...", "None"))
    parts = []
    for size in choice.first.shape[: draw.randint(1, dims)]:
        kind = draw.random()
        if kind < 0.25 and size:
            parts.append(str(draw.randrange(-size, size)))
        elif kind < 0.35:
            parts.append("None")
        else:
            parts.append(_slice(choice) or ":")
    if draw.random() < 0.3:
        parts.insert(0, "...")
    return ", ".join(parts)


def _index(choice: AttributeChoice) -> str | None:
    """Return a one-dimensional int64 tensor of indices into the first dimension, some of them equal."""
    size = choice.first.shape[0] if choice.first.dim() else 0
    if not size:
        return None
    draw = choice.draw
    count = draw.choice((1, 2, 3, size, 0)) if draw.random() < 0.8 else size + 2
    if draw.random() < 0.3:
        return f"(torch.arange({count}) % {size})"
    indices = [draw.randrange(-size if draw.random() < choice.back else 0, size) for _ in range(count)]
    return f"torch.tensor({indices}, dtype=torch.int64)"


def _places(choice: AttributeChoice) -> str | None:
    """Return an index of the operand's own shape, for gather and scatter along the last dimension."""
    shape = tuple(choice.first.shape)
    if not shape or not shape[-1]:
        return None
    count, step = choice.first.numel(), choice.draw.choice((1, 2, 3, 5))
    return f"((torch.arange({count}) * {step}).reshape({shape}) % {shape[-1]})"


def _padding(choice: AttributeChoice) -> str | None:
    if not choice.first.dim():
        return None
    sides = [choice.draw.choice((0, 1, 2, -1)) for _ in range(2 * choice.draw.randint(1, choice.first.dim()))]
    return str(sides)


def _parts(choice: AttributeChoice) -> str:
    return choice.draw.choice(("1", "2", "3"))


def _text(*texts: str) -> Drawer:
    return lambda choice: choice.draw.choice(texts)


DRAWERS: dict[str, Drawer] = {
    "dim": _dim,
    "newdim": _new_dim,
    "dims": _dims,
    "keep": _flag,
    "flag": _flag,
    "k": _number,
    "pos": _positive,
    "divisor": _divisor,
    "exponent": _exponent,
    "n": _whole,
    "dtype": _dtype,
    "fdtype": _float_dtype,
    "idtype": _int_dtype,
    "perm": _perm,
    "shape": _view_shape,
    "expanded": _expand_shape,
    "at": _size_index,
    "slice": _slice,
    "slices": _slices,
    "index": _index,
    "places": _places,
    "padding": _padding,
    "parts": _parts,
    "offset": _text("0", "1", "-1", "2"),
    "ord": _text("2", "1", "0", "float('inf')", "-float('inf')", "3", "0.5"),
    "rounding": _text("'floor'", "'trunc'", "None"),
    "correction": _text("0", "1", "2"),
    "reduction": _text("'mean'", "'sum'", "'none'"),
    "reduce": _text("'sum'", "'prod'", "'amax'", "'amin'", "'mean'"),
    "padmode": _text("'constant'", "'reflect'", "'replicate'", "'circular'"),
    "shift": _text("1", "-1", "2", "0"),
    "window": _text("1", "2", "3"),
    "bagmode": _text("'sum'", "'mean'", "'max'"),
    "upmode": _text("'bilinear'", "'bicubic'"),
    "nearmode": _text("'nearest'", "'nearest-exact'"),
    "stride": _text("(1,)", "(2,)", "(0,)"),
    "strides": _text("(2, 1)", "(1, 2)", "(0, 1)", "(1, 1)", "(3, 2)"),
    "decimals": _text("0", "1", "2", "-1"),
}
