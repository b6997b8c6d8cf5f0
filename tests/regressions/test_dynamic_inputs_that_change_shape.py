"""An input of dynamic size that the program gives another rank in place: its labels were read after the change."""

import pytest
import torch

import plumbline

PROGRAMS = {
    "unsqueeze_": (lambda x: x.unsqueeze_(0), (3,)),
    "squeeze_": (lambda x: x.squeeze_(0), (1, 3)),
    "unsqueeze_ and a write": (lambda x: x.unsqueeze_(0).mul_(2), (3,)),
    "transpose_": (lambda x: (x.transpose_(0, 1), x + 1)[1], (2, 3)),
}


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_shapes_and_values(name: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUMBLINE_STRICT", "1")  # an error of ours is an error here
    program, shape = PROGRAMS[name]
    compiled = plumbline.compile(program, backend=backend, dynamic=True)
    for size in (shape[-1], 5, 4):
        x = torch.arange(1.0, 1 + size).repeat(*shape[:-1], 1)
        twin = x.clone()
        actual, expected = compiled(twin), program(x)
        assert actual.stride() == expected.stride()
        assert torch.equal(actual, expected)
        assert torch.equal(twin, x)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
def test_sizes_read_after_the_change(backend: str) -> None:
    def program(x):
        return x.unsqueeze_(0) * x.shape[1]

    compiled = plumbline.compile(program, backend=backend, dynamic=True)
    for size in (3, 5):
        x = torch.arange(1.0, 1 + size)
        assert torch.equal(compiled(x.clone()), program(x))
