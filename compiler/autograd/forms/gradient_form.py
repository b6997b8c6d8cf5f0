"""What is known of a form with gradients without its trace: how its halves fit together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...stored.plain_data import Plain, plain_value
from ..histories.independent_results import ResultPart
from ..tangent_layouts import Layout

Pattern = tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class GradientForm:
    """tangents: which returned values have a gradient.

    layouts: sizes and strides of these gradients, symbols inside.  kept: where kept values are found, and stamps: what
    identifies them in every trace of the program (see partition).  targets: the names of the operators of the forward,
    to tell whether two traces ran the same program.  parts: of the results (see independent_results).
    """

    tangents: tuple[int, ...]
    layouts: tuple[Layout, ...]
    kept: tuple[tuple[str, int], ...]
    stamps: tuple[int | str, ...]
    targets: tuple[str, ...]
    parts: tuple[ResultPart, ...]


@dataclass(frozen=True, slots=True)
class KeptBackward:
    """A backward on disk, without its code: see CompiledBackward.

    condition: Python text over names, the dynamic sizes in order, that says for which it is right; empty for all.
    """

    reads: tuple[int, ...]
    targets: tuple[int, ...]
    condition: str
    names: tuple[str, ...]


def target_names(targets: Iterable[object]) -> tuple[str, ...]:
    """Return the operators of a forward by name."""
    return tuple(map(str, targets))


def backward_key(pattern: Pattern, sizes: tuple[float, ...]) -> tuple[Plain, ...]:
    """Return what names a backward inside its form: the tangents that exist, and the dynamic sizes."""
    return "backward", plain_value(pattern), plain_value(sizes)
