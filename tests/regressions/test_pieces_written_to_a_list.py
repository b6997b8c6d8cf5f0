"""Pieces that are copied into a list of tensors: their dtypes were asked of the list.

Found by `plumbline sweep operators --sizes dynamic`.
"""

import pytest
import torch

import plumbline

CALLS = {
    "split_with_sizes_copy": lambda x, outs: torch.split_with_sizes_copy(x, (1, 1), out=outs),
    "split_copy": lambda x, outs: torch.split_copy(x, 1, out=outs),
    "unbind_copy": lambda x, outs: torch.unbind_copy(x, out=outs),
}


def result_of(function, shape, dtype):
    """Return what was written, or the type of the error."""
    outs = [torch.ones(shape, dtype=dtype) for _ in range(2)]
    try:
        function(torch.arange(6.0).view(2, 3), outs)
    except Exception as error:
        return type(error)
    return outs


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CALLS)
def test_what_is_written_or_raised_is_eagers(name, dtype, dynamic, monkeypatch):
    monkeypatch.setenv("PLUMBLINE_STRICT", "1")  # an error of ours is raised instead of swallowed
    shape = (3,) if name == "unbind_copy" else (1, 3)
    compiled = plumbline.compile(CALLS[name], backend="aot_eager", dynamic=dynamic)
    found, expected = (result_of(function, shape, dtype) for function in (compiled, CALLS[name]))
    if isinstance(expected, type):
        assert found is expected
    else:
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
