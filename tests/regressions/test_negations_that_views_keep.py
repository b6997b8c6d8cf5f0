"""A view of a lazily negated tensor is one as well, and says so inside a capture."""

import pytest
import torch

import plumbline

VIEWS = {
    "select": lambda x: x[0],
    "transpose": lambda x: x.t(),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "expand": lambda x: x.expand(3, 2, 2),
    "narrow": lambda x: x[:, :1],
    "detach": lambda x: x.detach(),
    "clone": torch.clone,
    "product": lambda x: x * 2,
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_negated(name):
    def program(x):
        imaginary = torch.complex(x, x).conj().imag
        view = VIEWS[name](imaginary)
        return view.is_neg(), view + 0

    found, expected = plumbline.compile(program, backend="eager")(torch.ones(2, 2)), program(torch.ones(2, 2))
    assert found[0] is expected[0]
    assert torch.equal(found[1], expected[1])
