"""`one_hot` of a class out of range gave a row of zeros where eager raises: torch traces it without the checks."""

import pytest
import torch
from torch.nn import functional

import plumbline

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]


def as_float(x):
    return functional.one_hot(x, 3).float() * 2


def by_name(x):
    return functional.one_hot(x, num_classes=3)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [as_float, by_name])
@pytest.mark.parametrize("wrong", [3, 5, -1])
def test_eagers_error_is_raised(program, backend, wrong):
    good, bad = torch.tensor([[0, 2], [1, 1]]), torch.tensor([[0, 2], [1, wrong]])
    compiled = plumbline.compile(program, backend=backend)
    assert torch.equal(compiled(good), program(good))
    with pytest.raises(RuntimeError) as eagers:
        program(bad)
    with pytest.raises(RuntimeError) as ours:
        compiled(bad)
    assert str(ours.value) == str(eagers.value)
    assert torch.equal(compiled(good), program(good))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_program_that_catches_the_error(backend):
    def careful(x, log):
        log.append(1)
        try:
            return functional.one_hot(x, 3)
        except RuntimeError:
            return x - 1

    for x in (torch.tensor([1]), torch.tensor([4])):
        expected, actual = [], []
        assert torch.equal(plumbline.compile(careful, backend=backend)(x, actual), careful(x, expected))
        assert actual == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_batches_of_vmap(backend):
    x = torch.tensor([[0, 2, 1], [1, 1, 0]])
    for dim in (0, 1):
        program = torch.func.vmap(by_name, in_dims=dim)
        assert torch.equal(plumbline.compile(program, backend=backend)(x), program(x))


@pytest.mark.parametrize("backend", BACKENDS)
def test_dynamic_sizes(backend):
    compiled = plumbline.compile(lambda x: functional.one_hot(x, x.shape[0]) + 1, backend=backend, dynamic=True)
    for size in (3, 4, 5, 0, 1):
        x = torch.arange(size)
        if size:
            assert torch.equal(compiled(x), functional.one_hot(x, size) + 1)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dynamic", [None, True])
def test_a_number_of_classes_that_varies(backend, dynamic):
    def by_size(x, other):
        return functional.one_hot(x, other.shape[0])

    compiled = plumbline.compile(by_size, backend=backend, dynamic=dynamic)
    for size in (4, 5, 6):
        other = torch.ones(size)
        transposed = torch.tensor([[0, 2], [1, 3], [3, 0]]).t()
        expected, actual = by_size(transposed, other), compiled(transposed, other)
        assert torch.equal(actual, expected)
        assert actual.stride() == expected.stride()
        for wrong in (size, -1):
            with pytest.raises(RuntimeError) as eagers:
                by_size(torch.tensor([[0, wrong]]), other)
            with pytest.raises(RuntimeError) as ours:
                compiled(torch.tensor([[0, wrong]]), other)
            assert str(ours.value) == str(eagers.value)
