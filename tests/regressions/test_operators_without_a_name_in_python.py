"""`x.random_(0, 5)` is `aten.random.from`, which is no Python: `from` is a keyword."""

import pytest
import torch

import plumbline


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_random_numbers_of_a_range(backend, monkeypatch):
    monkeypatch.setenv("PLUMBLINE_STRICT", "1")

    def program(x):
        x.random_(0, 5)
        return x.clone().random_(3, 9) + 1

    compiled = plumbline.compile(program, backend=backend)
    for seed in range(2):
        torch.manual_seed(seed)
        mine = torch.zeros(20)
        result = compiled(mine)
        torch.manual_seed(seed)
        x = torch.zeros(20)
        assert torch.equal(result, program(x))
        assert torch.equal(mine, x)
