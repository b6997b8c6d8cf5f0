"""A dimension that had varied was looked up in a later tensor of fewer dimensions: an error of ours, then eager."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import plumbline


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@settings(max_examples=25, deadline=None)
@given(shapes=st.lists(st.lists(st.integers(0, 4), max_size=3), min_size=3, max_size=6))
def test_shapes_of_any_rank_one_after_the_other(backend, shapes):
    def program(x):
        return x * 2 + x.sum(), x.shape

    with plumbline.config.patch(strict=True):
        compiled = plumbline.compile(program, backend=backend)
        for shape in shapes:
            x = torch.ones(shape)
            (result, size), (expected, same) = compiled(x), program(x)
            assert torch.equal(result, expected)
            assert size == same
