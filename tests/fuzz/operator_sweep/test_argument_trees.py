"""Arguments as text: what the text makes is the argument again."""

import math

import pytest
import torch

from plumbline.fuzz.operator_sweep.argument_trees import CallText, tensor_text, tensors_of, with_tensors

TENSORS = [
    torch.tensor([1.5, math.inf, -math.inf]),
    torch.tensor([[1, 2], [3, 4]], dtype=torch.uint8).t(),
    torch.tensor(True),
    torch.tensor([1 + 2j], dtype=torch.complex64),
    torch.arange(8.0, dtype=torch.bfloat16)[::2],
    torch.empty((0, 3)),
    torch.ones(2, requires_grad=True),
]


@pytest.mark.parametrize("tensor", TENSORS, ids=str)
def test_the_text_of_a_tensor_makes_it_again(tensor):
    made = eval(tensor_text(tensor))
    assert torch.equal(made, tensor)
    assert (made.dtype, made.stride(), made.requires_grad) == (tensor.dtype, tensor.stride(), tensor.requires_grad)


def test_the_text_of_a_call_has_literals_and_names_what_has_none():
    x, nameless = torch.ones(1), object()
    texts = CallText(lambda tensor: "x", "K")
    args = (x, 1, -0.5, math.inf, "s", None, [x, (2, 3)], torch.float16, slice(0, None), nameless)
    text = texts.call("f", args, {"dim": torch.Size([4])})
    assert texts.constants == {"K_0": nameless}
    given, named = eval(text, {"f": lambda *a, **k: (a, k), "x": x, "torch": torch, **texts.constants})
    assert given == args
    assert named == {"dim": (4,)}


def test_trees_are_walked_in_order_and_rebuilt():
    tree = ([torch.tensor(0)], {"a": torch.tensor(1), "b": (torch.tensor(2), 3)})
    assert [int(tensor) for tensor in tensors_of(tree)] == [0, 1, 2]
    assert with_tensors(tree, int) == ([0], {"a": 1, "b": (2, 3)})
