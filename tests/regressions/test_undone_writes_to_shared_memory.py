"""Found by `fuzz graphs`: of two arguments with one memory only the later one was put back when the graph failed."""

import pytest
import torch

import plumbline


def swaps_and_fails(whole, part):
    whole[0], whole[-1] = whole[-1].clone(), whole[0].clone()
    part[1:].copy_(part[:-1])  # eager refuses it: the elements overlap
    return part


def adds_and_fails(whole, part):
    whole.add_(1)
    part.mul_(2)
    part[1:].copy_(part[:-1])
    return part


def adds_and_fails_on_data(whole, part):
    whole.add_(1)
    return part[torch.tensor([100])]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("fails", [swaps_and_fails, adds_and_fails, adds_and_fails_on_data], ids=lambda f: f.__name__)
def test_the_handler_sees_what_eager_leaves(fails, backend) -> None:
    def program(whole, part):
        try:
            return fails(whole, part)
        except (RuntimeError, IndexError):
            return whole + 1

    def left_by(function, shares: bool) -> list[object]:
        whole = torch.arange(7.0)
        part = whole[1:] if shares else whole[1:].clone()
        return [function(whole, part).tolist(), whole.tolist(), part.tolist()]

    compiled = plumbline.compile(program, backend=backend)
    for shares in (True, True, False):
        assert left_by(compiled, shares) == left_by(program, shares)
