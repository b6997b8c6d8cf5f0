"""`round(tensor)` gave a value where Python raises, and `x.type(torch.FloatTensor)` ended in an internal error."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import CompilerFailed, recording


@pytest.mark.parametrize("digits", [(), (1,)])
def test_tensors_have_no_round(digits: tuple[int, ...]) -> None:
    def f(x: torch.Tensor) -> object:
        return round(x, *digits)

    x = torch.tensor(1.5)
    with pytest.raises(TypeError) as expected:
        f(x)
    with pytest.raises(TypeError) as actual:
        plumbline.compile(f, backend="eager")(x)
    assert str(actual.value) == str(expected.value)


@pytest.mark.parametrize("kind", [torch.FloatTensor, torch.LongTensor, torch.BoolTensor, "torch.IntTensor", torch.half])
def test_types_given_as_classes(kind: object) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.type(kind) * 2

    x = torch.tensor([1.5, 0.0])
    with recording() as events:
        actual = plumbline.compile(f, backend="eager", fullgraph=True)(x)
    assert actual.dtype == f(x).dtype
    assert torch.equal(actual, f(x))
    assert not [event for event in events if isinstance(event, CompilerFailed)]
