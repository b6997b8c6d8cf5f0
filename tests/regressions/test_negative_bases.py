"""A negative number to the power of a tensor, and other numbers on the left, mean the same in every stage."""

import pytest
import torch

import plumbline

X = torch.tensor([0.0, 2.0, 3.0])
PROGRAMS = {
    "power": lambda x: (-2) ** x,
    "fraction": lambda x: (-0.5) ** x,
    "complex": lambda x: (-2j) ** x,
    "integers": lambda x: (-2) ** x.long(),
    "infinity": lambda x: (-float("inf")) ** x,
    "product": lambda x: -2 * x,
    "remainder": lambda x: -7 % (x + 2),
    "quotient": lambda x: -7 // (x + 2),
    "difference": lambda x: -7 - x,
    "shift": lambda x: -7 << x.long(),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_sign_belongs_to_the_number(name, backend):
    found = plumbline.compile(PROGRAMS[name], backend=backend, fullgraph=True)(X)
    expected = PROGRAMS[name](X)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6, equal_nan=True)
