"""Found by `plumbline fuzz guards`: an input's place in its storage was a constant that no guard held."""

import torch

import plumbline


def test_storage_offset_of_another_input_is_not_the_first_ones():
    function = plumbline.compile(lambda x: x + x.storage_offset(), backend="eager")
    assert function(torch.zeros(3)).tolist() == [0, 0, 0]
    assert function(torch.zeros(4)[1:]).tolist() == [1, 1, 1]
    assert function(torch.zeros(5)[2:]).tolist() == [2, 2, 2]
