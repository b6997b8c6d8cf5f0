"""A number that capture knew stayed known when a call on a list of tensors wrote to it: a wrong branch was taken."""

import pytest
import torch

import plumbline

NUMBERS = {"tensor": lambda x: torch.tensor(0.0), "zeros": lambda x: x.new_zeros(())}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_written_in_a_list_is_looked_at(name: str, backend: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        number, nothing = NUMBERS[name](x), NUMBERS[name](x)
        torch._foreach_add_([number], [x.sum()])
        return x * 2 if torch.allclose(number, nothing) else x * 3

    compiled = plumbline.compile(program, backend=backend)
    for x in (torch.ones(3), torch.zeros(3)):
        assert torch.equal(compiled(x), program(x))
