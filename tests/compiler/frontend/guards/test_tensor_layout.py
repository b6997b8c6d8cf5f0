"""The places in a tensor object are found by probing, and are refused as soon as one probe disagrees."""

import pytest
import torch

from plumbline.compiler.base.torch_facts import dispatch_key_bits, tensor_address
from plumbline.compiler.frontend.guards import tensor_layout as tested
from plumbline.compiler.values.guard import TensorFacts


def _facts(value: torch.Tensor, bits: tuple[bool, bool, bool] = (False, False, False)) -> TensorFacts:
    return TensorFacts(
        type(value), value.dtype, value.device, tuple(value.shape), tuple(value.stride()), value.requires_grad, bits
    )


def test_the_layout_of_this_torch_is_found() -> None:
    layout = tested.tensor_layout()
    assert layout is not None
    assert layout.number("dtype", torch.zeros(1)) == layout.number("dtype", torch.zeros(2))
    assert layout.number("dtype", torch.zeros(1)) != layout.number("dtype", torch.zeros(1, dtype=torch.int64))


def test_metadata_is_in_the_numbers_of_torch() -> None:
    value = torch.zeros(2, 3)
    found = tested.metadata(_facts(value))
    assert found is not None
    assert found[0] == dispatch_key_bits(value)
    assert found[4:] == (0, -1, (2, 3, 3, 1))


@pytest.mark.parametrize("bits", [(True, False, False), (False, True, False), (False, False, True)])
def test_what_needs_python_is_left_to_it(bits: tuple[bool, bool, bool]) -> None:
    assert tested.metadata(_facts(torch.zeros(2), bits)) is None


def test_a_word_that_is_not_where_every_probe_has_it_is_no_place() -> None:
    probes = [torch.zeros(2), torch.zeros(3, dtype=torch.int64)]
    rows = [(id(probe), type(probe).__basicsize__, tensor_address(probe)) for probe in probes]
    assert tested._common_offset(rows) is not None
    rows[1] = (*rows[1][:2], rows[0][2])
    assert tested._common_offset(rows) is None


def test_a_function_that_gives_one_wrong_answer_is_not_trusted() -> None:
    probes = [torch.zeros(2), torch.zeros(2, requires_grad=True)]
    rows = [(tensor_address(probe), probe.requires_grad) for probe in probes]
    assert tested._trusted(tested._REQUIRES_GRAD, rows) in (0, tested.tensor_layout().requires_grad)
    assert tested._trusted(tested._REQUIRES_GRAD, [(rows[0][0], True), rows[1]]) == 0
    assert tested._trusted("no_such_symbol", rows) == 0


def test_without_a_symbol_there_is_no_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tested, "address_of", lambda symbol: None)
    assert tested.tensor_layout.__wrapped__() is None
