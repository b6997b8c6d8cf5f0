"""What functions of torch warn of in Python (broadcast sizes of a loss) was said when captured and at no later call."""

import warnings

import pytest
import torch
from torch.nn import functional

import plumbline


def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    loss = functional.mse_loss(x, y)
    return loss + functional.kl_div(x.log_softmax(0), x.softmax(0), reduction="mean")


def _warned(function: object, action: str) -> list[tuple[str, str, int, str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)  # type: ignore[arg-type]  # one of the literals
        for _ in range(3):
            function(torch.ones(3), torch.ones(1))  # type: ignore[operator]  # f, compiled or not
    return [(str(w.message), w.category.__name__, w.lineno, w.filename) for w in caught]


@pytest.mark.parametrize("action", ["always", "default"])
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
def test_at_each_call(backend: str, action: str) -> None:
    compiled = plumbline.compile(f, backend=backend, fullgraph=True)
    assert _warned(compiled, action) == _warned(f, action)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_sizes_that_are_symbolic(backend: str) -> None:
    compiled = plumbline.compile(f, backend=backend, dynamic=True)
    assert sorted(text for text, *_ in _warned(compiled, "always")) == sorted(text for text, *_ in _warned(f, "always"))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_as_an_error(backend: str) -> None:
    compiled = plumbline.compile(f, backend=backend)
    compiled(torch.ones(3), torch.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UserWarning, match="target size"):
                compiled(torch.ones(3), torch.ones(1))


def copied(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tensor(x) * torch.range(0, 2)


def leaf(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tensor(x, requires_grad=True) + functional.mse_loss(x, y)


def without_dimension(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.softmax(x)


BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]


@pytest.mark.parametrize("action", ["always", "default"])
@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [copied, leaf, without_dimension])
def test_of_functions_in_c(program: object, backend: str, fullgraph: bool, action: str) -> None:
    compiled = plumbline.compile(program, backend=backend, fullgraph=fullgraph)
    assert _warned(compiled, action) == _warned(program, action)


@pytest.mark.parametrize("action", ["always", "default"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_of_python_in_one_graph(backend: str, action: str) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if NotImplemented:
            x = x + 1
        return x - functional.mse_loss(x, y)

    compiled = plumbline.compile(program, backend=backend, fullgraph=True)
    assert _warned(compiled, action) == _warned(program, action)


def test_one_that_a_handler_might_see_is_refused_in_one_graph() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        try:
            return x * (2 if NotImplemented else 1)
        except DeprecationWarning:
            return x

    with pytest.raises(Exception, match="warns"):
        plumbline.compile(program, backend="eager", fullgraph=True)(torch.ones(2))
