"""A number that differs from call to call took part in fewer checks, or vanished, where a literal did not."""

import pytest
import torch

import plumbline


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
def test_a_product_that_does_not_fit_is_refused_at_every_call(backend):
    def scaled(whole, factor):
        return whole.mul_(factor)

    compiled = plumbline.compile(scaled, backend=backend)
    for factor in (0.5, 2.0, 3.0):
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
            compiled(torch.tensor(1), factor)
    assert compiled(torch.tensor(1), 4).item() == 4


@pytest.mark.cc
def test_a_number_outlives_a_lowering_that_gives_up(monkeypatch):
    monkeypatch.setenv("PLUMBLINE_STRICT", "1")
    compiled = plumbline.compile(lambda number: torch.full((3,), number) > number, backend="inductor")
    for number in (1.0, 0.5, 0.25):
        assert compiled(number).tolist() == [False] * 3


def test_a_size_takes_whole_numbers_only():
    def joined(item):
        added = (item,)
        try:
            return torch.Size([2]) + added
        except TypeError as error:
            return str(error)

    compiled = plumbline.compile(joined, backend="eager")
    for item in (3, "three"):
        assert compiled(item) == joined(item)
