"""A result has a base (`_base`) where the program takes a view of memory that it does not return, and else none."""

import pytest
import torch
from torch.nn import functional

import plumbline

FRESH = {
    "transposed in place": lambda x: (x * 2).t_(),
    "reshaped in place": lambda x: (x * 2).unsqueeze_(0).transpose_(0, 1).squeeze_(1),
    "made by a view of ours": lambda x: functional.group_norm(x.view(1, 2, 3), 1),
}
VIEWS = {"a view": lambda x: (x * 2).view(-1), "a part": lambda x: (x + 1)[0], "turned": lambda x: x.exp().t()}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", [*FRESH, *VIEWS])
def test_bases_of_results(name, backend):
    program = FRESH.get(name) or VIEWS[name]
    x = torch.arange(6.0).reshape(2, 3)
    result = plumbline.compile(program, backend=backend)(x)
    expected = program(x)
    torch.testing.assert_close(result, expected)
    assert (expected._base is None) == (name in FRESH)
    assert (result._base is None) == (name in FRESH)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", FRESH)
def test_fresh_results_with_gradients(name, backend):
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    assert plumbline.compile(FRESH[name], backend=backend)(x)._base is None
