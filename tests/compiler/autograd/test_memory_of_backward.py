"""A backward frees what the forward kept while it runs, and only where nobody may need it again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.autograd.profiler import profile

import plumbline

WIDTH = 256
BYTES = WIDTH * WIDTH * 4


def layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(6):
        x = torch.tanh(x @ w)
    return x


def peak_of_step(step: Callable[[], None]) -> int:
    """Return the most bytes that the CPU allocator has given out during a step, above those before it."""
    with profile(profile_memory=True, use_kineto=True) as record:
        step()
    assert record.kineto_results is not None
    alive = peak = 0
    for event in sorted(record.kineto_results.events(), key=lambda each: each.start_ns()):
        if event.name() == "[memory]":
            alive += event.nbytes()
            peak = max(peak, alive)
    return peak


def test_kept_values_go_while_backward_runs() -> None:
    x, w = torch.randn(WIDTH, WIDTH, requires_grad=True), torch.randn(WIDTH, WIDTH, requires_grad=True)
    compiled = plumbline.compile(layers)
    compiled(x, w / 16)
    peaks = []
    for _ in range(3):
        peaks.append(peak_of_step(lambda: compiled(x, w / 16).sum().backward()))
        x.grad = w.grad = None
    assert peaks[1] == peaks[2] <= peaks[0] - 2 * BYTES


def test_a_graph_that_is_retained_keeps_them_and_gives_the_same_again() -> None:
    x, w = torch.randn(WIDTH, WIDTH, requires_grad=True), torch.randn(WIDTH, WIDTH) / 16
    compiled = plumbline.compile(layers)
    compiled(x, w).sum().backward()
    loss = compiled(x, w).sum()
    found = [torch.autograd.grad(loss, x, retain_graph=True)[0] for _ in range(2)]
    found += torch.autograd.grad(loss, x)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_what_the_caller_holds_is_as_it_was() -> None:
    """A kept value that is an input, or a result, is freed by nobody and written by nobody."""
    x, w = torch.randn(WIDTH, WIDTH, requires_grad=True), torch.randn(WIDTH, WIDTH, requires_grad=True)
    compiled = plumbline.compile(lambda x, w: torch.tanh(x @ w))
    for _ in range(3):
        result = compiled(x, w)
        before = [x.clone(), w.clone(), result.clone()]
        result.backward(torch.ones_like(result))
        assert all(map(torch.equal, before, (x, w, result)))


def test_an_input_that_eager_does_not_keep_may_be_written_to_before_backward() -> None:
    x, b = torch.randn(WIDTH, WIDTH, requires_grad=True), torch.randn(WIDTH)
    compiled = plumbline.compile(lambda x, b: (x * x + b).sin() * 2)
    for program in (compiled, compiled, lambda x, b: (x * x + b).sin() * 2):
        addend = b.clone()
        result = program(x, addend)
        addend.zero_()
        (gradient,) = torch.autograd.grad(result.sum(), x)
        (expected,) = torch.autograd.grad(((x * x + b).sin() * 2).sum(), x)
        torch.testing.assert_close(gradient, expected)
