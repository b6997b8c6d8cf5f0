"""A function of `torch.jit.script` ended the graph, where stock's compiler takes the Python that it was made of."""

import types
import warnings

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import Unsupported

with warnings.catch_warnings():
    warnings.simplefilter("ignore")

    @torch.jit.script
    def scaled(x: torch.Tensor, y: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        if factor > 1.0:
            return x * y * factor
        return x + y

    @torch.jit.script
    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return scaled(x, x), x.relu()

    @torch.jit.script
    def filled(given: list[torch.Tensor]) -> torch.Tensor:
        given.append(given[0] * 2)
        return given[0] + len(given)

    settings = types.ModuleType("settings")
    settings.LIMIT = 3.0

    @torch.jit.script
    def limited(x: torch.Tensor) -> torch.Tensor:
        return x.clamp(max=settings.LIMIT)

    @torch.jit.script
    def halved(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor

    @torch.jit.script
    def told(x: torch.Tensor) -> torch.Tensor:
        if torch.jit.is_scripting():
            return x + 1
        return x + 2

    @torch.jit.script
    def demanding(x: torch.Tensor, count: int) -> torch.Tensor:
        if count < 0:
            raise ValueError("no negative count")
        assert count < 5
        return x * count

    @torch.jit.script
    def rounded(x: torch.Tensor, number: float) -> torch.Tensor:
        return x * round(number)

    def shifted(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @torch.jit.script
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return shifted(x) * 2


CALLS = {
    "numbers": lambda x: scaled(x.sin(), x) + scaled(x, x, 0.5),
    "by name": lambda x: scaled(x.sin(), y=x, factor=3.0),
    "several results": lambda x: torch.stack(both(x)),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", CALLS)
def test_it_is_one_graph(name, backend):
    x = torch.randn(3, requires_grad=True)
    compiled = plumbline.compile(CALLS[name], backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(x), CALLS[name](x))
    ours, eagers = (torch.autograd.grad(call(x).sum(), x) for call in (compiled, CALLS[name]))
    torch.testing.assert_close(ours, eagers)


def test_lists_are_copied_when_they_enter_a_script():
    def fill(x):
        given = [x]
        return filled(given), len(given)

    compiled = plumbline.compile(fill, backend="eager")
    assert torch.equal(compiled(torch.ones(3))[0], fill(torch.ones(3))[0])
    assert compiled(torch.ones(3))[1] == fill(torch.ones(3))[1] == 1


def test_numbers_of_modules_are_those_of_the_time_of_scripting(monkeypatch):
    monkeypatch.setattr(settings, "LIMIT", 1.0)

    def call(x):
        return limited(x)

    x = torch.full((3,), 5.0)
    assert torch.equal(plumbline.compile(call, backend="eager")(x), call(x))


def test_whole_numbers_become_floats():
    def call(x):
        return halved(x, 2)

    found = plumbline.compile(call, backend="eager")(torch.ones(3, dtype=torch.int64))
    assert found.dtype == call(torch.ones(3, dtype=torch.int64)).dtype == torch.float32


def test_functions_are_those_of_the_time_of_scripting(monkeypatch):
    monkeypatch.setitem(globals(), "shifted", lambda x: x + 100)

    def call(x):
        return doubled(x)

    assert torch.equal(plumbline.compile(call, backend="eager")(torch.ones(3)), call(torch.ones(3)))


def error_of(call, *args):
    with pytest.raises(Exception) as raised:  # noqa: PT011  which kind it is is what is compared
        call(*args)
    return type(raised.value)


@pytest.mark.parametrize("count", [-1, 7])
def test_errors_are_those_of_scripts(count):
    def call(x, count):
        try:
            return demanding(x, count)
        except (ValueError, AssertionError):
            return x

    found = error_of(plumbline.compile(call, backend="eager"), torch.ones(3), count)
    assert found is error_of(call, torch.ones(3), count)
    assert not issubclass(found, ValueError | AssertionError)


def test_scripts_round_to_floats():
    def call(x, number):
        return rounded(x, number)

    x = torch.ones(3, dtype=torch.int64)
    assert plumbline.compile(call, backend="eager")(x, 2.25).dtype == call(x, 2.25).dtype


def test_what_asks_whether_it_is_scripted_is_called():
    def call(x):
        return told(x) * 2

    assert torch.equal(plumbline.compile(call, backend="eager")(torch.ones(3)), call(torch.ones(3)))
    with pytest.raises(Unsupported, match="told"):
        plumbline.compile(call, backend="eager", fullgraph=True)(torch.ones(3))
