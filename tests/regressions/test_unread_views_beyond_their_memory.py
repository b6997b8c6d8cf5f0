"""A view that would reach behind its memory raises where nobody reads it, too, whatever sizes vary."""

import pytest
import torch

import plumbline


def unread(x):
    torch.as_strided(x, (3, 3), (2, 3), 1)
    return x + 1


def asked_for_its_sizes(x):
    return x + torch.as_strided(x, (3, 3), (2, 3), 1).shape[0]


def of_what_data_give(x):
    kept = x[x > 2]
    return torch.as_strided(kept, (3, 3), (2, 3), 1) * 2


def of_its_own_sizes(x):
    return torch.as_strided(x, (x.shape[0] // 2,), (2,)) * 2


def outcome(program, length):
    try:
        return program(torch.arange(float(length))).tolist()
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("program", [unread, asked_for_its_sizes, of_what_data_give, of_its_own_sizes])
def test_it_raises(program, dynamic, backend):
    compiled = plumbline.compile(program, backend=backend, dynamic=dynamic)
    for length in (20, 30, 5, 12, 11):
        assert outcome(compiled, length) == outcome(program, length)
