"""Numbers read by `item()` under `capture_scalar_outputs`: in the graph while only tensors meet them."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Broke, Captured, CompilerFailed, RanEagerly, recording


@pytest.fixture(autouse=True)
def fresh():
    plumbline.reset()


def watched(function, *args, backend="eager"):
    with recording() as events, plumbline.config.patch(capture_scalar_outputs=True):
        result = plumbline.compile(function, backend=backend)(*args)
    assert not [event for event in events if isinstance(event, RanEagerly | CompilerFailed)]
    return result, *(sum(isinstance(event, kind) for event in events) for kind in (Captured, Broke))


def same(result, expected):
    if isinstance(expected, tuple):
        return len(result) == len(expected) and all(map(same, result, expected))
    if not isinstance(expected, torch.Tensor):
        return type(result) is type(expected) and result == expected
    return result.dtype == expected.dtype and torch.equal(result, expected)


FLOAT = torch.tensor([0.1, -2.5, 3.0])
ONE_GRAPH = {
    "product": lambda x: x * x.sum().item(),
    "on the left": lambda x: x.sum().item() * x,
    "difference": lambda x: x.max().item() - x,
    "quotient": lambda x: x / x.max().item(),
    "in place": lambda x: x.clone().mul_(2).sub_(1) * x.sum().item(),
    "float arithmetic": lambda x: x * (x.sum().item() * 2 + 0.1 - 1),
    "two of them": lambda x: x * (x.sum().item() * x.max().item()),
    "negated": lambda x: x + -x.sum().item(),
    "of another dtype": lambda x: x.half() * x.sum().item(),
    "bfloat16": lambda x: x.bfloat16() * x.sum().item() + x.sum().item(),
    "in float64": lambda x: x.double() * x.sum().item(),
    "whole number": lambda x: x * x.argmax().item(),
    "whole numbers": lambda x: torch.arange(3) + x.argmax().item(),
    "complex": lambda x: x * 1j * x.sum().item(),
    "returned": lambda x: (x + 1, x.sum().item()),
    "kept": lambda x: (x + 1, [x.argmax().item()])[0],
}
SEVERAL = {
    "branch": lambda x: x + 1 if x.sum().item() > 0 else x - 1,
    "size": lambda x: torch.zeros(int(x.abs().sum().item())) + 1,
    "index": lambda x: x[x.argmax().item()] * 2,
    "power": lambda x: x ** x.max().item(),
    "reciprocal": lambda x: x.max().item() / x,
    "division of numbers": lambda x: x * (x.sum().item() / 3),
    "text": lambda x: (x * 2, f"{x.sum().item():.3f}"),
    "another dtype": lambda x: torch.arange(3) * x.sum().item(),
    "no dimension": lambda x: x.sum() * x.max().item(),
    "bool": lambda x: x * (x > 0).all().item(),
    "argument": lambda x: torch.clamp(x, min=x.sum().item()),
    "whole arithmetic": lambda x: x * (x.argmax().item() * 2),
    "in a list": lambda x: x * [x.sum().item()][0] + len([x.sum().item()]),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ONE_GRAPH)
def test_one_graph(name, backend):
    program = ONE_GRAPH[name]
    result, graphs, breaks = watched(program, FLOAT.clone(), backend=backend)
    assert same(result, program(FLOAT.clone()))
    assert (graphs, breaks) == (1, 0)


@pytest.mark.parametrize("name", SEVERAL)
def test_what_needs_the_number_breaks_there_and_is_right(name):
    program = SEVERAL[name]
    result, _, _ = watched(program, FLOAT.clone())
    assert same(result, program(FLOAT.clone()))


@pytest.mark.cc
@pytest.mark.parametrize("name", ["product", "whole number", "float arithmetic"])
def test_generated_code_has_the_number_too(name):
    program = ONE_GRAPH[name]
    result, graphs, _ = watched(program, FLOAT.clone(), backend="inductor")
    torch.testing.assert_close(result, program(FLOAT.clone()))
    assert graphs == 1


USES = {
    "slice": lambda x: x[: x.argmax().item()].sin(),
    "size": lambda x: torch.zeros(x.argmax().item() + 2) + 1,
    "fill": lambda x: torch.full((x.argmax().item() + 1,), x.max().item()) * 2,
    "narrow": lambda x: x.narrow(0, 0, int(x.argmax())) + 1,
    "reshape": lambda x: torch.arange(12).reshape(x.argmax().item() + 1, -1),
    "repeat": lambda x: x.repeat(x.argmax().item() + 1),
    "index": lambda x: x[x.argmax().item()] * 2,
    "power": lambda x: x ** x.argmax().item(),
    "branch": lambda x: x + 1 if x.argmax().item() > 1 else x - 1,
    "float branch": lambda x: x + 1 if float(x.max()) > 100 else x - x.max().item(),
    "list": lambda x: torch.zeros(x.abs().long().tolist()) + 1,
    "loop": lambda x: sum(x * i for i in range(x.argmax().item() + 1)),
    "written before": lambda x: torch.zeros((x.add_(1) > 2).sum().item() + 2) + x.sum(),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", USES)
def test_a_number_that_takes_little_to_compute_may_be_used_for_anything(name, backend):
    with recording() as events, plumbline.config.patch(capture_scalar_outputs=True):
        run = plumbline.compile(USES[name], backend=backend, fullgraph=True)
        for numbers in ([2.5, 1.5, 4.0], [1.5, 2.5, 5.0], [3.5, 9.5, 1.0], [7.0, 2.0, 3.0]):
            assert same(run(torch.tensor(numbers)), USES[name](torch.tensor(numbers)))
    assert not [event for event in events if isinstance(event, CompilerFailed | Broke)]
    assert sum(isinstance(event, Captured) for event in events) <= 4


@pytest.mark.cc
@pytest.mark.parametrize("name", ["slice", "fill", "written before"])
def test_generated_code_has_such_sizes(name):
    with plumbline.config.patch(capture_scalar_outputs=True):
        run = plumbline.compile(USES[name], backend="inductor")
        for numbers in ([2.5, 1.5, 4.0], [1.5, 2.5, 5.0], [3.5, 9.5, 1.0]):
            torch.testing.assert_close(run(torch.tensor(numbers)), USES[name](torch.tensor(numbers)))


def test_a_size_that_eager_refuses_is_refused():
    def program(x):
        return torch.zeros(x.sum().item())

    with plumbline.config.patch(capture_scalar_outputs=True):
        run = plumbline.compile(program, backend="eager")
        assert same(run(torch.tensor([1, 2])), program(torch.tensor([1, 2])))
        with pytest.raises(RuntimeError, match="negative"):
            run(torch.tensor([1, -4]))
        with pytest.raises(TypeError):
            run(torch.tensor([1.5, 2.0]))


def test_a_number_that_is_always_needed_itself_breaks_in_the_end():
    run = plumbline.compile(lambda x: (x * 2, f"{x.sum().item():.3f}"), backend="eager")
    with recording() as events, plumbline.config.patch(capture_scalar_outputs=True):
        for number in range(6):
            assert run(torch.tensor([float(number)]))[1] == f"{number:.3f}"
    assert [event for event in events if isinstance(event, Broke)]


def test_it_is_the_number_of_each_call():
    with plumbline.config.patch(capture_scalar_outputs=True):
        run = plumbline.compile(lambda x: x * x.sum().item(), backend="eager", fullgraph=True)
        for factor in (1.0, 2.0, float("nan"), float("inf")):
            x = torch.tensor([factor, 1.0])
            torch.testing.assert_close(run(x), x * x.sum().item(), equal_nan=True)


def test_it_is_taken_where_it_is_read():
    def program(x):
        number = x.sum().item()
        x.add_(1)
        return x * number

    assert same(watched(program, FLOAT.clone())[0], program(FLOAT.clone()))


def test_no_gradient_passes_it():
    def program(x):
        return (x * x.sum().item()).sum()

    x = FLOAT.clone().requires_grad_()
    found = torch.autograd.grad(watched(program, x, backend="aot_eager")[0], x)
    assert same(found, torch.autograd.grad(program(x), x))


def test_without_the_setting_it_breaks():
    with recording() as events:
        plumbline.compile(ONE_GRAPH["product"], backend="eager")(FLOAT)
    assert [event.reason for event in events if isinstance(event, Broke)] == ["data-dependent-value"]
