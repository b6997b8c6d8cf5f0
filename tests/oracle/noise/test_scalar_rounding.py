"""Python scalars combined with low-precision tensors."""

import torch

from plumbline.oracle.noise.shadow import ShadowRun


def follow(function, *inputs, **options):
    with ShadowRun(**options) as run:
        result = function(*inputs)
    return run, result


def exactly(run, tensor, expected):
    """Assert that the exact lane holds the float64 value `expected`."""
    assert torch.equal(run.lanes_of(tensor).exact, expected), (run.lanes_of(tensor).exact, expected)


X = torch.tensor([0.1, 0.7, -1.3, 2.5])


def test_scalars_are_taken_as_eager_takes_them():
    h = X.half()
    tenth = float(torch.tensor(0.3).half())
    run, (kept, cast, filled) = follow(
        lambda v: (v * 0.3, torch.fmod(v, 0.3), v.masked_fill(v > 1, 0.3)), torch.tensor([300.0, 2.5, 8.25]).half()
    )
    y = torch.tensor([300.0, 2.5, 8.25]).double()
    exactly(run, kept, y * 0.3)
    exactly(run, cast, torch.fmod(y, tenth))
    exactly(run, filled, torch.full((3,), tenth).double())
    run, above = follow(lambda v: v >= 0.1, torch.tensor([0.1]))
    assert run.lanes_of(above).exact.all()
    assert h.dtype == torch.float16
