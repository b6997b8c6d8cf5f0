"""Under a default device other than the CPU, generated code wrote into memory that device does not have."""

import pytest
import torch

import plumbline


def scaled(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x * 1.1 + 0.7).sum(-1)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_kernels_allocate_where_their_inputs_are(backend: str) -> None:
    compiled = plumbline.compile(scaled, backend=backend, options={"strict": True})
    x, y = (torch.ones(2, 3, device="cpu", requires_grad=True) for _ in range(2))
    with torch.device("meta"):
        got, wanted = compiled(x), scaled(y)
        got.backward(torch.ones_like(got))
    wanted.backward(torch.ones_like(wanted))
    assert got.device.type == "cpu"
    torch.testing.assert_close(got, wanted)
    assert x.grad is not None
    assert y.grad is not None
    torch.testing.assert_close(x.grad, y.grad)


def test_a_branch_on_data_may_read_an_open_size() -> None:
    """The size had no example value, which was an error of ours."""

    def program(x: torch.Tensor) -> torch.Tensor:
        n = x.shape[0]
        return torch.cond(x.sum() > 0, lambda a: a * n, lambda a: a - n, (x,))

    compiled = plumbline.compile(program, backend="eager", dynamic=True, fullgraph=True, options={"strict": True})
    for size in (3, 4, 5):
        assert torch.equal(compiled(torch.ones(size)), torch.full((size,), float(size)))
