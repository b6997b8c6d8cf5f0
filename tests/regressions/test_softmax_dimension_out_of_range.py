"""The lowering took `dim` modulo the rank, so a program that eager rejects gave an answer."""

import pytest
import torch

import plumbline


@pytest.mark.cc
@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
def test_softmax_over_a_dimension_that_is_not_there_raises_as_eager_does(function):
    compiled = plumbline.compile(lambda x: function(x, dim=10))
    with pytest.raises(IndexError):
        compiled(torch.arange(4.0))


@pytest.mark.cc
def test_softmax_of_a_number_still_has_one_dimension():
    compiled = plumbline.compile(lambda x: torch.softmax(x, dim=0))
    assert compiled(torch.tensor(3.0)).item() == 1
