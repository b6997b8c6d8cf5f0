"""The levels of one graph: every one gives eager's answer, and the inputs and generators stay as they were."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it
from torch import fx

from plumbline.compiler.base.errors import Unsupported
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.validation.levels import STAGES, first_departure, run_levels

pytestmark = pytest.mark.cc


def program(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = F.layer_norm(F.gelu(x @ w), (6,))
    b.add_(1)
    return y.sum(-1), torch.dropout(y, 0.5, True), y * b, b


def inputs() -> tuple[torch.Tensor, ...]:
    return torch.randn(4, 5), torch.randn(5, 6, requires_grad=True), torch.ones(6)


def test_every_level_runs_forward_and_backward_and_leaves_no_trace() -> None:
    arguments, state = inputs(), torch.get_rng_state()
    gm = fx.symbolic_trace(program)
    results = run_levels(gm, arguments)
    assert tuple(result.stage for result in results) == STAGES
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(arguments[2], torch.ones(6))
    assert arguments[1].grad is None
    for result in results:
        assert result.error is None, result.stage
        assert result.backward_error is None
        assert torch.equal(result.written[2], torch.full((6,), 2.0))
        assert len(result.gradients) == 1
        torch.testing.assert_close(result.gradients[0], results[0].gradients[0])
        assert result.sharing == results[0].sharing
        for value, expected in zip(result.outputs, results[0].outputs, strict=True):
            torch.testing.assert_close(value, expected)
    assert first_departure(gm, arguments) is None


def test_an_aten_graph_without_gradients_has_all_levels() -> None:
    x = torch.randn(3, 4)
    results = run_levels(trace(lambda x: (x.softmax(-1), x.argmax(-1)), (x,)), (x,), backward=False)
    assert tuple(result.stage for result in results) == STAGES
    assert all(result.gradients == () and result.error is None for result in results)


def test_what_cannot_be_traced_ends_the_list_with_its_error() -> None:
    def seeds(x: torch.Tensor) -> tuple[torch.Tensor]:
        return (x.to_sparse().to_dense(),)

    results = run_levels(fx.symbolic_trace(seeds), (torch.eye(3),))
    assert results[0].error is None
    assert results[-1].stage == "traced graph"
    assert results[-1].error is not None


def test_what_the_program_raises_is_the_error_of_every_level_that_runs() -> None:
    gm = fx.symbolic_trace(lambda x, i: (torch.index_select(x, 0, i),))
    results = run_levels(gm, (torch.ones(3), torch.tensor([7])))
    assert all(isinstance(result.error, IndexError | RuntimeError) for result in results)
    assert not any(isinstance(result.error, Unsupported) for result in results)
    assert first_departure(gm, (torch.ones(3), torch.tensor([7]))) is None
