"""torch 2.11's shape rule lets `select` pass out of range: generated code read there, and an unread call vanished."""

import pytest
import torch

import plumbline

BACKENDS = ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]


@pytest.mark.parametrize("index", [3, -4, 9])
@pytest.mark.parametrize("is_read", [True, False], ids=["read", "unread"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_eagers_error_comes(backend, is_read, index):
    def program(x):
        part = torch.select(x, -2, index) * 2
        return part if is_read else x + 1

    x = torch.ones(3, 4)
    with pytest.raises(IndexError) as expected:
        program(x)
    with pytest.raises(IndexError) as found:
        plumbline.compile(program, backend=backend)(x)
    assert str(found.value) == str(expected.value)
