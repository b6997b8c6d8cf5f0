"""The table of lowerings: what it must hold, and what a call makes of its arguments."""

from pathlib import Path

import pytest
import torch

from plumbline.compiler.graph.facts import OpKind, op_facts
from plumbline.compiler.lowering import lower
from plumbline.compiler.lowering.registry import LOWERINGS, check_fits
from plumbline.compiler.lowering.views import VIEWS
from plumbline.compiler.lowering.writer import NoLowering

aten = torch.ops.aten
EXPECTED = Path(__file__).parent / "expected" / "lowered.txt"


def names() -> list[str]:
    assert lower.lower_graph  # importing it fills the tables
    return sorted(str(operator) for operator in [*LOWERINGS, *VIEWS])


def test_the_table_is_the_expected_one() -> None:
    """A lost lowering would only make graphs slower, so nothing else would notice."""
    assert names() == EXPECTED.read_text().split()


def test_views_are_views_and_lowerings_are_pure() -> None:
    for operator in VIEWS:
        # reshape is a view where it can be one; unsafe_split shares memory although its schema does not say so
        if operator not in (aten.reshape.default, aten.unsafe_split.Tensor):
            assert op_facts(operator).kind is OpKind.VIEW, operator
    for operator in LOWERINGS:
        assert op_facts(operator).is_pure, operator


@pytest.mark.parametrize(
    ("value", "dtype"), [(300, torch.uint8), (-1, torch.uint8), (2**31, torch.int32), (0.5, torch.int64)]
)
def test_a_number_that_does_not_fit_is_left_to_aten(value: float, dtype: torch.dtype) -> None:
    with pytest.raises(NoLowering):
        check_fits(value, dtype)
    check_fits(value, torch.float32)
