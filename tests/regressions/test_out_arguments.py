"""`out=`: tensors that had to grow were left as they were, and scans computed in the wrong dtype."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import CompilerFailed, recording

BACKENDS = ("aot_eager", pytest.param("inductor", marks=pytest.mark.cc))


def alike(function, *makers, backend, dynamic=False):
    """Run eager and compiled from equal arguments; the last one is `out`."""
    expected, actual = [make() for make in makers], [make() for make in makers]
    result = function(*expected)
    with recording() as events:
        compiled = plumbline.compile(function, backend=backend, dynamic=dynamic)(*actual)
    assert [event.error for event in events if isinstance(event, CompilerFailed)] == []
    assert torch.equal(result, compiled)
    assert torch.equal(expected[-1], actual[-1])
    assert expected[-1].dtype == actual[-1].dtype


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "function",
    [
        lambda x, out: torch.add(x, x, out=out),
        lambda x, out: torch.dot(x, x, out=out),
        lambda x, out: torch.index_select(x, 0, torch.tensor([0]), out=out),
        lambda x, out: torch.softmax(x, 0, out=out),
    ],
)
def test_a_tensor_that_has_to_grow_grows(function, backend, dynamic):
    alike(function, lambda: torch.arange(5.0), lambda: torch.empty(0), backend=backend, dynamic=dynamic)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_scan_computes_in_the_dtype_of_its_output(backend):
    alike(
        lambda x, out: torch.cumsum(x, 0, out=out),
        lambda: torch.arange(5.0) * 0.7,
        lambda: torch.zeros(5, dtype=torch.int64),
        backend=backend,
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_operator_that_does_not_show_its_write_runs_in_plain_python(backend):
    alike(
        lambda x, out: torch.linalg.matrix_rank(x, out=out),
        lambda: torch.ones(1, 3, 3),
        lambda: torch.full((1,), 7),
        backend=backend,
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_composite_operator_may_grow_tensors_of_its_own(backend):
    torch.manual_seed(0)
    a, b = torch.randn(3, 3) + 3 * torch.eye(3), torch.randn(3, 2)
    expected, actual = torch.zeros(3, 2), torch.zeros(3, 2)
    torch.linalg.solve(a, b, out=expected)
    with recording() as events:
        plumbline.compile(lambda a, b, out: torch.linalg.solve(a, b, out=out), backend=backend)(a, b, actual)
    assert [event.error for event in events if isinstance(event, CompilerFailed)] == []
    torch.testing.assert_close(actual, expected)


def test_several_outputs_may_grow():
    def histogram(x, counts, edges):
        return torch.histogram(x, 2, out=(counts, edges))

    outputs = torch.empty(0), torch.empty(0)
    with recording() as events:
        plumbline.compile(histogram, backend="aot_eager")(torch.arange(4.0), *outputs)
    assert [event.error for event in events if isinstance(event, CompilerFailed)] == []
    assert [tensor.tolist() for tensor in outputs] == [[2, 2], [0, 1.5, 3]]
