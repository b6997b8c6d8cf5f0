"""What a result says of its history, and what it answers to another backward."""

import pytest
import torch

from plumbline.compiler.values.torch.spent_history import refusal_of, with_spent_history


def test_a_fresh_history_refuses_nothing():
    x = torch.ones(3, requires_grad=True)
    assert refusal_of((x**2).sum()) is None


def test_a_used_up_history_refuses_in_the_engines_words():
    x = torch.ones(3, requires_grad=True)
    y = x**2
    torch.autograd.grad(y.sum(), x)
    words = refusal_of(y)
    with pytest.raises(RuntimeError) as caught:
        y.sum().backward()
    assert words == str(caught.value)


def test_a_history_that_keeps_nothing_is_never_used_up():
    x = torch.ones(3, requires_grad=True)
    y = (x + 1).sum()
    torch.autograd.grad(y, x)
    assert refusal_of(y) is None


def test_the_result_shares_memory_and_refuses():
    x = torch.ones(3)
    with torch.no_grad():
        y = with_spent_history(x, "used up")
    assert y.requires_grad
    assert not y.is_leaf
    assert y.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="used up"):
        y.sum().backward()


def test_a_gradient_for_a_leaf_of_the_history_is_refused_too():
    w, other = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    y = with_spent_history(torch.ones(3), "used up", w)
    with pytest.raises(RuntimeError, match="used up"):
        torch.autograd.grad(y.sum(), w)
    assert torch.autograd.grad(y.sum(), other, allow_unused=True) == (None,)
