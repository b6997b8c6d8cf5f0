"""The order of dimensions in memory gives the strides back, and only tensors without gaps have one."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from plumbline.compiler.base.dense_order import dense_order, dense_strides

SIZES = st.lists(st.integers(1, 4), max_size=4)


@given(SIZES, st.randoms())
def test_permuted_tensors_have_an_order(sizes: list[int], random) -> None:
    order = list(range(len(sizes)))
    random.shuffle(order)
    made = torch.empty(sizes).permute(order)
    found = dense_order(made.shape, made.stride())
    assert found is not None
    assert dense_strides(made.shape, found) == made.stride()


@given(SIZES)
def test_row_major_comes_first(sizes: list[int]) -> None:
    made = torch.empty(sizes)
    assert dense_order(made.shape, made.stride()) == tuple(range(len(sizes)))


def test_gaps_and_overlaps_have_none() -> None:
    for made in (torch.empty(4, 8)[:, :6], torch.empty(4, 1).expand(4, 3), torch.empty(8)[::2]):
        assert dense_order(made.shape, made.stride()) is None
