"""Found by reading: a graph that breaks under another default dtype was compiled under that one."""

import pytest
import torch

import plumbline


def roots(x):
    first = x.sin()
    torch.set_default_dtype(torch.float64)
    second = x.sin()
    torch.set_default_dtype(torch.float32)
    return first, second


def left_behind(x):
    first = x / 3
    torch.set_default_dtype(torch.float64)
    return first


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", [roots, left_behind], ids=lambda program: program.__name__)
def test_dtypes_are_those_at_each_place(program, backend: str) -> None:
    def dtypes(function) -> list[torch.dtype]:
        try:
            result = function(torch.arange(4))
            parts = result if isinstance(result, tuple) else (result,)
            return [*(part.dtype for part in parts), torch.get_default_dtype()]
        finally:
            torch.set_default_dtype(torch.float32)

    compiled = plumbline.compile(program, backend=backend)
    assert [dtypes(compiled) for _ in range(2)] == [dtypes(program)] * 2
