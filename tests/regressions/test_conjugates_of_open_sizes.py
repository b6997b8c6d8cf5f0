"""Found by hand: with dynamic sizes a conjugate view was captured as a plain tensor.

`is_conj()` was False, and `resolve_conj()` gave the argument itself where eager makes a copy.
"""

import pytest
import torch

import plumbline


def told(x):
    plain = x.resolve_conj().resolve_neg()
    whole = x if not x.is_complex() else x.imag
    return x.is_conj(), x.is_neg(), whole.is_neg(), x[1:].is_conj(), plain is x, plain, x * 2, x.clone()


def views(size: int) -> list[torch.Tensor]:
    pairs = torch.complex(torch.randn(size), torch.randn(size))
    return [pairs, pairs.conj(), pairs.conj().imag, pairs.imag]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_conjugates_keep_their_mark(backend: str) -> None:
    compiled = plumbline.compile(told, backend=backend, dynamic=True)
    for size in (4, 5):
        for view in views(size):
            expected, got = told(view), compiled(view)
            assert got[:5] == expected[:5]
            for one, other in zip(got[5:], expected[5:], strict=True):
                torch.testing.assert_close(one.resolve_conj().resolve_neg(), other.resolve_conj().resolve_neg())
                assert (one.is_conj(), one.is_neg()) == (other.is_conj(), other.is_neg())
            shares = [
                result[5].untyped_storage().data_ptr() == view.untyped_storage().data_ptr()
                for result in (expected, got)
            ]
            assert shares[0] == shares[1]
