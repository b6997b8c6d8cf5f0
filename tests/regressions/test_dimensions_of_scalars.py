"""Lowerings took a dimension modulo the rank: by zero for a scalar, an error of ours in place of eager's."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import CompilerFailed, recording


@pytest.mark.cc
@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.select_scatter(x, x, 0, 0),
        lambda x: torch.cat([x, x]),
        lambda x: x.select(0, 0),
        lambda x: torch.index_select(x, 1, torch.tensor([0])),
    ],
)
def test_a_scalar_has_no_dimension_to_name(function):
    with pytest.raises((IndexError, RuntimeError)) as expected:
        function(torch.tensor(1.0))
    with recording() as events, pytest.raises(type(expected.value)):
        plumbline.compile(lambda x: function(x))(torch.tensor(1.0))
    assert [event.error for event in events if isinstance(event, CompilerFailed)] == []


@pytest.mark.cc
def test_what_a_scalar_may_do_it_still_does():
    def program(x):
        return x.transpose(0, -1), x.unsqueeze(-1), torch.gather(x, 0, torch.tensor(0)), x.cumsum(0), x.flip(())

    x = torch.tensor(3.0)
    for actual, expected in zip(plumbline.compile(program)(x), program(x), strict=True):
        assert torch.equal(actual, expected)
