"""Memory compared byte by byte."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check
from plumbline.oracle import equal_memory as under_test
from plumbline.oracle.equal_memory import digest_of, equal_memory, equal_storages


@pytest.fixture(params=["library", "torch"])
def compared_by(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(under_test, "_library_compare", lambda: None)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000])
def test_storages_are_equal_until_one_byte_differs(compared_by, count):
    first = torch.arange(count, dtype=torch.uint8)
    second = first.clone()
    assert equal_storages(first.untyped_storage(), second.untyped_storage())
    for at in {0, count // 2, count - 1} if count else ():
        second[at] += 1
        assert not equal_storages(first.untyped_storage(), second.untyped_storage())
        second[at] -= 1


def test_storages_of_other_sizes_differ(compared_by):
    assert not equal_storages(torch.zeros(3).untyped_storage(), torch.zeros(4).untyped_storage())


def test_tensors_of_one_dense_layout_are_compared():
    value = torch.randn(3, 4, 5)
    for first in (value, value.permute(2, 0, 1), value[1:], value[..., None]):
        second = first.clone(memory_format=torch.preserve_format)
        assert equal_memory(first, second)
        second[-1, -1, -1] += 1
        assert not equal_memory(first, second)


def test_memory_between_the_elements_is_never_read():
    first, second = torch.zeros(4, 4), torch.zeros(4, 4)
    second[:, 1] = 1
    assert not equal_memory(first[:, ::2], second[:, ::2])  # not dense: undecided
    assert not equal_memory(torch.zeros(1).expand(4), torch.zeros(1).expand(4))


def test_bytes_that_mean_other_values_are_not_equal():
    value = torch.randn(4, dtype=torch.complex64)
    assert not equal_memory(value, value.clone().conj())
    assert not equal_memory(value.imag, value.conj().imag)  # the second is lazily negated


def test_zeros_that_are_stored_nowhere_have_a_digest():
    """Autograd makes such gradients: the judge read at their address, which is none."""
    x = torch.ones(8, requires_grad=True)
    (zeros,) = torch.autograd.grad(torch.sgn(x).sum(), x)
    assert zeros.data_ptr() == 0
    assert digest_of(zeros) == digest_of(torch.zeros(8))


def test_a_program_with_such_gradients_is_judged():
    def program(x):
        return torch.erf(x), torch.sgn(x)

    def rounded(x):
        value, sign = program(x)
        return value * (1 + 2**-23), sign

    verdict = check(program, (torch.linspace(-1, 1, 8, requires_grad=True),), compiled=rounded)
    assert verdict.kind is VerdictKind.NOISE, str(verdict)
