"""The table of traced NumPy functions: how each is called, on what, and how far its results may be from NumPy's.

`python tests/support/numpy_table.py` writes docs/numpy.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.compiler.values.library.numpy_rows import ELEMENTS, FOLDS, METHODS

FLOATS = (np.float32, np.float64)
DTYPES = (np.bool_, np.int8, np.int64, np.uint8, *FLOATS)


@dataclass(frozen=True, slots=True)
class Entry:
    """One traced thing. run: of arrays, as a program writes it.  count: of its arrays.  units: 0: every bit is NumPy's.

    sums: rounding may differ as that of sums in another order.
    """

    name: str
    run: Callable[..., Any]
    count: int
    units: int = 0
    sums: bool = False
    matrices: bool = False


def entries() -> Iterator[Entry]:
    """Yield everything that is traced."""
    for ufunc, row in ELEMENTS.items():
        yield Entry(ufunc.__name__, ufunc, ufunc.nin, row.units)
    for function, fold in FOLDS.items():
        name = function.__name__
        yield Entry(name, lambda x, f=function: f(x), 1, 4, fold.sums)
        yield Entry(f"{name} along an axis", lambda x, f=function: f(x, axis=-1), 1, 4, fold.sums)
        if not fold.keeps_shape:
            yield Entry(
                f"{name} that keeps dimensions", lambda x, f=function: f(x, axis=0, keepdims=True), 1, 4, fold.sums
            )
    for name, function in METHODS.items():
        yield Entry(f"ndarray.{name}", lambda x, n=name: getattr(x, n)(axis=0), 1, 4, FOLDS[function].sums)
    for name, (run, count, sums) in _WHOLE.items():
        yield Entry(name, run, count, 16 if sums else 0, sums, matrices=name in _MATRICES)
    for name, run in _OPERATORS.items():
        yield Entry(f"operator {name}", run, 1 if name.endswith("number") or name in ("-x", "~") else 2)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "&": lambda x, y: x & y,
    "|": lambda x, y: x | y,
    "^": lambda x, y: x ^ y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "-x": lambda x: -x,
    "~": lambda x: ~x,
    "+ number": lambda x: x + 2,
    "- number": lambda x: 2 - x,
    "* number": lambda x: x * 3,
    "* float number": lambda x: x * 0.1,
    "/ number": lambda x: x / 3,
    "// number": lambda x: x // 3,
    "% number": lambda x: x % 3,
    "** number": lambda x: x**2,
    "< number": lambda x: x < 1,
    "== number": lambda x: x == 0,
}
_WHOLE: dict[str, tuple[Callable[..., Any], int, bool]] = {
    "where": (lambda x, y: np.where(x > y, x, y), 2, False),
    "where with numbers": (lambda x: np.where(x > 0, x, 0), 1, False),
    "clip": (lambda x: np.clip(x, 0, 1), 1, False),
    "clip from below": (lambda x: np.clip(x, 1, None), 1, False),
    "clip where bounds cross": (lambda x: np.clip(x, 1, 0), 1, False),
    "concatenate": (lambda x, y: np.concatenate([x, y]), 2, False),
    "concatenate along an axis": (lambda x, y: np.concatenate((x, y), axis=-1), 2, False),
    "stack": (lambda x, y: np.stack([x, y]), 2, False),
    "stack along an axis": (lambda x, y: np.stack([x, y], axis=1), 2, False),
    "vstack": (lambda x, y: np.vstack([x, y]), 2, False),
    "hstack": (lambda x, y: np.hstack([x, y]), 2, False),
    "column_stack": (lambda x, y: np.column_stack([x, y]), 2, False),
    "reshape": (lambda x: np.reshape(x, -1) if x.ndim else x[...], 1, False),
    "ravel": (lambda x: np.ravel(x), 1, False),
    "transpose": (lambda x: np.transpose(x), 1, False),
    "swapaxes": (lambda x: np.swapaxes(x, 0, 1), 1, False),
    "copy": (lambda x: np.copy(x), 1, False),
    "expand_dims": (lambda x: np.expand_dims(x, 0), 1, False),
    "moveaxis": (lambda x: np.moveaxis(x, 0, 1), 1, False),
    "fix": (lambda x: np.fix(x), 1, False),
    "zeros_like": (lambda x: np.zeros_like(x), 1, False),
    "ones_like": (lambda x: np.ones_like(x), 1, False),
    "sort": (lambda x: np.sort(x), 1, False),
    "sort along an axis": (lambda x: np.sort(x, axis=0), 1, False),
    "tile": (lambda x: np.tile(x, 2), 1, False),
    "triu": (lambda x: np.triu(x), 1, False),
    "tril": (lambda x: np.tril(x, 1), 1, False),
    "diagonal": (lambda x: np.diagonal(x) + 0, 1, False),
    "trace": (lambda x: np.trace(x), 1, True),
    "matmul": (lambda x, y: np.matmul(x, y), 2, True),
    "operator @": (lambda x, y: x @ y, 2, True),
    "dot": (lambda x, y: np.dot(x, y), 2, True),
    "outer": (lambda x, y: np.outer(x, y), 2, True),
    "einsum": (lambda x, y: np.einsum("ij,jk->ik", x, y), 2, True),
    "linalg.norm": (lambda x: np.linalg.norm(x), 1, True),
    "linalg.inv": (lambda x: np.linalg.inv(x), 1, True),
    "linalg.det": (lambda x: np.linalg.det(x), 1, True),
    "linalg.solve": (lambda x, y: np.linalg.solve(x, y), 2, True),
    "ndarray.T": (lambda x: x.T + x.dtype.type(0), 1, False),
    "ndarray.astype": (lambda x: x.astype(np.float64), 1, False),
    "ndarray.copy": (lambda x: x.copy(), 1, False),
    "ndarray.flatten": (lambda x: x.flatten(), 1, False),
    "ndarray.ravel": (lambda x: x.ravel(), 1, False),
    "ndarray.reshape": (lambda x: x.reshape(-1), 1, False),
    "ndarray.transpose": (lambda x: x.transpose(), 1, False),
    "ndarray.swapaxes": (lambda x: x.swapaxes(0, 1), 1, False),
    "ndarray.dot": (lambda x, y: x.dot(y), 2, True),
    "x[i]": (lambda x: x[1], 1, False),
    "x[i, j]": (lambda x: x[1, 0], 1, False),
    "x[i:j]": (lambda x: x[1:], 1, False),
    "x[:, i]": (lambda x: x[:, 1], 1, False),
    "x[:, None]": (lambda x: x[:, None], 1, False),
    "x[...]": (lambda x: x[..., 0], 1, False),
    "x[::2]": (lambda x: x[::2], 1, False),
    "x[list]": (lambda x: x[[0, 1, 0]], 1, False),
}
_MATRICES = frozenset(
    name
    for name in _WHOLE
    if (name.startswith("linalg.") and name != "linalg.norm") or name in ("einsum", "operator @")
) | {"matmul", "dot", "ndarray.dot", "trace"}


SMALL = """\
A call of compiled code costs 10 to 15 µs before its first kernel starts; NumPy takes a third of a microsecond for
an operation on a few elements. So a call that is little work runs in NumPy, as the user's own function, although
its graph was captured. The work is counted when the code is captured: the elements that its operations read and
write (four times for `exp` and its like), 2000 more for each operation, 6000 for a reduction. Up to
`numpy_threshold`, 160000, nothing is compiled. From then on such calls are told by their arguments alone, in about
0.3 µs: arrays, numbers, flags and texts as before, with no more elements than were found to be little work; limits
are found in a few captures. Larger calls go to the specialisations, whose guards hold only where there is more
work where sizes are open. Functions that do nothing but call libraries (matrix products, `sort`, `linalg`) are
left to NumPy at every size.

That holds for backend `inductor`, for functions without a break whose only tensors are arrays that they are given
as arguments. The other backends, `explain`, the judge, `verify="run"` and `profile` run every graph;
`numpy_threshold=0` compiles every call. The record says what was left to NumPy (`FellBack`)."""


def page() -> str:
    """Return the text of docs/numpy.md."""
    lines = [
        "# NumPy functions that are traced",
        "",
        "Made by `python tests/support/numpy_table.py` from the table that `tests/programs/test_numpy_rows.py` holds",
        "against NumPy: over dtypes, special values, shapes, transposed and empty arrays, in one graph or by itself",
        "in NumPy. *equal*: every bit is NumPy's. *n units*: at most n units in the last place away, for",
        "floating-point numbers. *sums*: sums in another order, within rounding. What is not in the table runs in",
        "NumPy, between two graphs. Where NumPy would warn of a result, the original code runs and warns. While",
        "inputs are finite, what is checked is that results are, once for a chain of operations; where some are not",
        "and NumPy would not warn, the code is captured once more, with what excuses each operation.",
        "",
        "## Small arrays",
        "",
        *SMALL.splitlines(),
        "",
        "## The table",
        "",
        "| what | results |",
        "|---|---|",
    ]
    for entry in entries():
        words = "sums" if entry.sums else f"{entry.units} units" if entry.units and entry.name in _ROUNDED else "equal"
        lines.append(f"| `{entry.name}` | {words} |".replace("| `operator |`", "| `operator \\|`"))
    return "\n".join(lines) + "\n"


_ROUNDED = frozenset(ufunc.__name__ for ufunc, row in ELEMENTS.items() if row.units)

if __name__ == "__main__":
    path = Path(__file__).parents[2] / "docs" / "numpy.md"
    path.write_text(page(), encoding="utf-8")
    print(sum(1 for _ in entries()), "rows")
