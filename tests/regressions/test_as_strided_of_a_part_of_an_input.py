"""Found by `fuzz graphs`: `a[1:].as_strided(…)` of an input that begins later in its storage read other elements."""

import pytest
import torch

import plumbline

PROGRAMS = {
    "part": lambda x: x[1:].as_strided((2,), (2,)),
    "flat part": lambda x: x.flatten()[1:].as_strided((2,), (2,)),
    "all": lambda x: x[:].as_strided((2,), (2,)),
    "at a place": lambda x: x[1:].as_strided((2,), (2,), 3),
    "of a copy": lambda x: (x * 1)[1:].as_strided((2,), (2,)),
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("begin", [0, 1, 5])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_elements_are_those_of_eager(program, begin: int, backend: str) -> None:
    x = torch.arange(32)[begin:]
    result, expected = plumbline.compile(program, backend=backend)(x), program(x)
    assert torch.equal(result, expected)
    assert result.storage_offset() == expected.storage_offset()
