"""Indexing lays its result as the kernel does where sizes are 1: the index has strides there, and they count."""

import random

import pytest
import torch

from plumbline.compiler import api
from plumbline.compiler.graph.shapes.indexed_layout import with_indexed_strides


def lying_anyhow(draws, shape):
    order = list(range(len(shape)))
    draws.shuffle(order)
    return torch.zeros([shape[dim] for dim in order]).permute([order.index(dim) for dim in range(len(shape))])


def drawn(draws):
    """Return a source and its indexes, of sizes among which many are 1."""
    sizes = [draws.choice([1, 2, 3, 5]) for _ in range(draws.randrange(1, 5))]
    picked = [draws.choice([1, 2, 4]) for _ in range(draws.randrange(1, 4))]
    places = sorted(draws.sample(range(len(sizes)), draws.randrange(1, min(3, len(sizes)) + 1)))
    indices = [None] * (places[-1] + 1)
    for place in places:
        shape = [size if draws.random() < 0.7 else 1 for size in picked]
        indices[place] = torch.zeros_like(lying_anyhow(draws, shape), dtype=torch.int64)
    return lying_anyhow(draws, sizes), indices


@pytest.mark.parametrize("seed", range(20))
def test_strides_are_the_kernels(seed):
    draws = random.Random(seed)
    for _ in range(50):
        source, indices = drawn(draws)
        if all(index is None or index.is_contiguous() for index in indices):
            continue  # torch's own rule says what these give
        given = torch.ops.aten.index.Tensor(source, indices)
        found = with_indexed_strides(source, indices, given.contiguous())
        told = [step for step, size in zip(found.stride(), found.shape, strict=True) if size != 1]
        assert told == [step for step, size in zip(given.stride(), given.shape, strict=True) if size != 1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_the_program_that_found_it(backend):
    def function(a):
        return a[a.unbind(3)[0].long().remainder(5)]

    a = torch.randint(0, 2, (1, 8, 1, 5)).bool().permute((3, 2, 1, 0))
    expected, actual = function(a), api.compile(function, backend=backend)(a)
    assert torch.equal(actual, expected)
    assert actual.stride() == expected.stride()
