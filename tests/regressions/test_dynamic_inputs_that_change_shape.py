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


CHANGES = {
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "transpose_": lambda x: x.transpose_(0, 1),
    "t_": lambda x: x.t_(),
    "squeeze_": lambda x: x.unsqueeze_(1).squeeze_(1).t_(),
    "resize_": lambda x: x.resize_(x.shape[1], x.shape[0]),
    "set_": lambda x: x.set_(torch.ones(3, 2)),
    "as_strided_": lambda x: x.as_strided_((2,), (1,), 1),
    "data": lambda x: setattr(x, "data", torch.cat([x, x])),
    "data that is a view": lambda x: setattr(x, "data", x[1:]),
}


def _facts(x: torch.Tensor) -> list[object]:
    numbers = [x.shape[0], x.size(-1), x.numel(), x.storage_offset(), x.ndim, len(x)]
    return [*numbers, x.shape, x.stride(), x.is_contiguous(), x.nbytes, {"half": x.numel() / 2}]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("dynamic", [None, True])
def test_numbers_given_back_after_the_change(name: str, dynamic: bool | None, backend: str) -> None:
    change = CHANGES[name]

    def program(x):
        before = x.shape[0], x.shape, x.numel()
        change(x)
        return before, _facts(x), x * 2 + before[0]

    compiled = plumbline.compile(program, backend=backend, dynamic=dynamic)
    for size in (3, 5, 4):
        x = torch.arange(1.0, 1 + 2 * size).view(2, size)
        twin = x.clone()
        actual, expected = compiled(twin), program(x)
        assert actual[:2] == expected[:2]
        assert torch.equal(actual[2], expected[2])
        assert _facts(twin) == _facts(x)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
def test_inputs_that_swap_their_data(backend: str) -> None:
    def program(x, y):
        x.data, y.data = y.data, x.data
        return x.shape, y.shape, x.shape[0] * y.numel(), x * 2

    compiled = plumbline.compile(program, backend=backend, dynamic=True)
    for size in (3, 5):
        arguments, twins = ((torch.ones(2, size), torch.ones(size + 2, size)) for _ in range(2))
        actual, expected = compiled(*twins), program(*arguments)
        assert actual[:3] == expected[:3]
        assert torch.equal(actual[3], expected[3])
        assert [twin.shape for twin in twins] == [argument.shape for argument in arguments]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
def test_detaching_a_view_in_place(backend: str) -> None:
    compiled = plumbline.compile(lambda x: x.detach_() * 2, backend=backend, dynamic=True)
    with pytest.raises(RuntimeError, match="view"):
        compiled(torch.ones(6).view(2, 3))
    assert compiled(torch.ones(2, 3)).sum() == 12
