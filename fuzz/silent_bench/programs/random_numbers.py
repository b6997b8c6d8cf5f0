"""Random numbers: same draws, same order, same generator state afterwards.

`fallback_random` asks inductor for the draws of eager; other backends take them anyway.
"""

import random

import numpy as np
import torch


def test_shuffle_is_not_frozen():
    """random.shuffle inside the function gives a new order on every call."""

    def permuted(x):
        order = list(range(20))
        random.shuffle(order)
        return x + torch.tensor(order)

    random.seed(0)
    permuted = torch.compile(permuted)
    for _ in range(3):
        permuted(torch.zeros(20))


def test_sample_is_not_frozen():
    """random.sample gives a new sample on every call."""

    def picked(x):
        return x + torch.tensor(random.sample(range(100), 8))

    random.seed(0)
    picked = torch.compile(picked)
    for _ in range(3):
        picked(torch.zeros(8))


def test_randomised_leaky_relu():
    """RReLU in training mode draws one slope per negative element."""
    torch.manual_seed(0)
    x = torch.randn(64)
    torch.compile(torch.nn.RReLU(), options={"fallback_random": True})(x)


def test_rand_then_argsort():
    """The permutation drawn is that of eager, and so is the generator state after it."""
    torch.manual_seed(1)
    torch.compile(lambda: torch.argsort(torch.rand(2, 12), -1), options={"fallback_random": True})()


def test_bernoulli_draws_of_eager():
    """bernoulli(p) must not be rewritten to rand() < p when the draws of eager are asked for."""
    torch.manual_seed(0)
    torch.compile(lambda p: torch.bernoulli(p), options={"fallback_random": True})(torch.full((1, 64), 0.5))


def test_random_number_of_python_is_not_frozen():
    """random.random() inside the function is a new number on every call."""
    random.seed(0)
    run = torch.compile(lambda x: x + random.random())
    for _ in range(3):
        run(torch.zeros(2))


def test_random_number_of_numpy_is_not_frozen():
    """np.random.rand() inside the function is a new number on every call."""
    np.random.seed(0)
    run = torch.compile(lambda x: x + torch.from_numpy(np.random.rand(2)))
    for _ in range(3):
        run(torch.zeros(2))


def test_generator_of_the_user():
    """Draws come from the user's own generator, and leave it where eager leaves it."""
    generator = torch.Generator().manual_seed(3)
    run = torch.compile(lambda x: x + torch.rand(2, generator=generator), options={"fallback_random": True})
    run(torch.zeros(2))
    run(torch.zeros(2))


def test_two_equal_draws_differ():
    """Two calls of rand are two draws."""
    torch.manual_seed(0)
    torch.compile(lambda: torch.rand(4) - torch.rand(4), options={"fallback_random": True})()


def test_dropout_in_training_draws_once():
    """Forward and backward of a dropout use the same mask."""
    torch.manual_seed(0)
    x = torch.ones(64, requires_grad=True)
    drop = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5), options={"fallback_random": True})
    drop(x).sum().backward()


def test_seed_set_inside():
    """manual_seed inside the function decides the draws after it."""

    def draw(x):
        torch.manual_seed(7)
        return x + torch.rand(2)

    torch.compile(draw, options={"fallback_random": True})(torch.zeros(2))


def test_draw_in_a_branch_that_raises():
    """A draw before an error has advanced the generator."""

    def draw(x, i):
        noise = torch.rand(3)
        try:
            return (x + noise)[i]
        except IndexError:
            return x

    torch.manual_seed(0)
    torch.compile(draw, options={"fallback_random": True})(torch.zeros(3), 8)
