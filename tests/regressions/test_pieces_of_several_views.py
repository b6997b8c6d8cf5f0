"""One piece of `split` that a graph gave could be written to, which eager refuses; a join of nothing had no loop."""

from collections.abc import Callable

import pytest
import torch

import plumbline


@pytest.mark.parametrize(
    "piece",
    [lambda a: (a * 2).split(1)[1], lambda a: (a * 2).unbind(1)[1], lambda a: a.exp().chunk(2)[0]],
    ids=["split", "unbind", "chunk"],
)
def test_caller_does_not_write_to_a_piece(piece: Callable[[torch.Tensor], torch.Tensor]) -> None:
    result = plumbline.compile(piece, backend="aot_eager")(torch.randn(2, 3, requires_grad=True))
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        result.sub_(1)


def test_program_does_not_write_to_a_piece_that_it_leaves_behind() -> None:
    def left(a: torch.Tensor) -> torch.Tensor:
        (a * 2).split(1)[-1].sub_(0.0)
        return a.detach() + 1

    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        plumbline.compile(left, backend="aot_eager")(torch.randn(2, 3, requires_grad=True))


def test_join_of_empty_pieces_is_read_by_a_call() -> None:
    def picked(a: torch.Tensor) -> torch.Tensor:
        return a[torch.arange(4) % 2, :-1].split(1)[-1] * 1

    x = torch.randn(2, 1, requires_grad=True)
    plumbline.compile(picked, backend="inductor", options={"strict": True, "verify": "run"})(x).sum().backward()
    assert torch.equal(x.grad, torch.zeros(2, 1))
