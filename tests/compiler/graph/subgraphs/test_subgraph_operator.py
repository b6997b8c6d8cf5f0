"""Calls with subgraphs, forward and backward: one graph, compiled under every backend, as plain Python computes it."""

import pytest
import torch
from torch import fx

import plumbline
from plumbline.compiler.base.events import Broke, Captured, CompilerFailed, RanEagerly, recording
from plumbline.compiler.graph.node_values import placeholders
from plumbline.compiler.validation.levels import STAGES, run_levels
from support.subgraph_programs import ALL, Twins, choose
from support.torch_release import since_release

UNWANTED = (Broke, CompilerFailed, RanEagerly)
# Gradients through what a scan carries are lost by torch 2.11: the call is left to it.
LEFT_TO_TORCH = () if since_release("2.13") else ("reads_what_it_begins_with", "folded_backwards")
by_name = pytest.mark.parametrize("twins", ALL, ids=[twins.name for twins in ALL])


def inputs(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two tensors that require gradients."""
    generator = torch.Generator().manual_seed(rows)
    first, second = (torch.randn(rows, 4, generator=generator) for _ in range(2))
    return first.requires_grad_(), second.requires_grad_()


def outcome(function, rows: int) -> list[torch.Tensor]:
    """Return the result of a program and its gradients; what is not reached has zeros, as torch's operators give."""
    given = inputs(rows)
    result = function(*given)
    result.backward(torch.linspace(-1, 1, result.numel()).reshape(result.shape))
    return [result.detach(), *(torch.zeros_like(x) if x.grad is None else x.grad for x in given)]


def demand_one_graph(twins: Twins, events) -> None:
    unwanted = [event for event in events if isinstance(event, UNWANTED)]
    if twins.name in LEFT_TO_TORCH:
        assert {type(event) for event in unwanted} == {Broke}
        assert "scan through which gradients flow" in unwanted[0].what
        return
    assert not unwanted
    assert sum(isinstance(event, Captured) for event in events) == 1


@by_name
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_one_graph_as_plain_python(twins: Twins, backend):
    with recording() as events:
        run = plumbline.compile(twins.program, backend=backend)
        torch.testing.assert_close(outcome(run, 3), outcome(twins.meaning, 3))
    demand_one_graph(twins, events)


@pytest.mark.parametrize("twins", [twins for twins in ALL if twins.dynamic], ids=lambda twins: twins.name)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_open_sizes_take_one_graph(twins: Twins, backend):
    with recording() as events:
        run = plumbline.compile(twins.program, backend=backend, dynamic=True)
        for rows in (3, 5, 6):
            torch.testing.assert_close(outcome(run, rows), outcome(twins.meaning, rows))
    demand_one_graph(twins, events)


@by_name
def test_every_level_agrees(twins: Twins):
    """From the captured graph to C, forward and backward."""
    graphs: list[fx.GraphModule] = []

    def keep(gm: fx.GraphModule, example_inputs):
        del example_inputs
        graphs.append(gm)
        return gm.forward

    plumbline.compile(twins.program, backend=keep)(*inputs(3))
    if twins.name in LEFT_TO_TORCH:
        assert len(graphs) != 1
        return
    (gm,) = graphs
    levels = run_levels(gm, inputs(3)[: len(placeholders(gm.graph))])
    assert [level.stage for level in levels] == list(STAGES)
    failed = [level for level in levels if level.error is not None]
    # levels run under hooks of saved tensors, which torch refuses around a derivative that is not traced
    assert all(level is levels[0] and "saved tensor hooks" in str(level.error) for level in failed)
    first, *others = levels[len(failed) :]
    for level in others:
        torch.testing.assert_close(list(level.outputs), list(first.outputs))
        torch.testing.assert_close(list(level.gradients), list(first.gradients))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_numbers_that_vary_are_inputs_of_a_branch(backend):
    def program(a, n, scale):
        return torch.cond(a.sum() > 0, lambda z: z * n + scale, lambda z: z / n - scale, (a,))

    run = plumbline.compile(program, backend=backend)
    for n, scale in ((2, 0.5), (3, 0.25), (5, 1.5), (7, -2.5)):
        a = torch.randn(4)
        wanted = choose(a.sum() > 0, lambda z: z * n + scale, lambda z: z / n - scale, (a,))  # noqa: B023  called here
        torch.testing.assert_close(run(a, n, scale), wanted)


def test_only_the_chosen_branch_runs():
    """The other one would fail on its index."""

    def program(a, place):
        return torch.cond(a.sum() > 0, lambda z: z[place].clone(), lambda z: z.sin(), (a,))

    run = plumbline.compile(program)
    a = torch.tensor([-1.0, -2.0])
    assert torch.equal(run(a, torch.tensor([7, 7])), a.sin())
    assert torch.equal(run(-a, torch.tensor([1, 0])), -a[[1, 0]])
    with pytest.raises(IndexError):
        run(-a, torch.tensor([7, 7]))


def test_what_no_branch_reads_has_a_gradient_of_zeros():
    """As torch's operator gives; the branch that ran does not read `w`."""
    for backend in ("eager", "aot_eager", "inductor"):
        a, w = inputs(3)
        run = plumbline.compile(
            lambda a, w: torch.cond(a.sum() > -100, lambda z: z.sin(), lambda z: z * w, (a,)), backend=backend
        )
        run(a, w).sum().backward()
        assert torch.equal(w.grad, torch.zeros_like(w))
        torch.testing.assert_close(a.grad, a.detach().cos())


def test_a_second_gradient():
    for backend in ("eager", "aot_eager", "inductor"):
        a, w = inputs(3)
        run = plumbline.compile(
            lambda a, w: torch.cond(a.sum() > -100, lambda z: z.sin() * w, lambda z: z * w, (a,)).sum(), backend=backend
        )
        (gradient,) = torch.autograd.grad(run(a, w), a, create_graph=True)
        gradient.sum().backward()
        torch.testing.assert_close(a.grad, (-a.sin() * w).detach())


def test_draws_in_a_branch_go_on_in_order():
    """Without gradients a branch that draws is part of the graph, and draws what it draws in plain Python."""

    def program(a):
        first = torch.rand(3)
        middle = torch.cond(a.sum() > 0, lambda z: z + torch.rand(3), lambda z: z - torch.rand(3), (a,))
        return first, middle, torch.rand(3)

    def plainly(a):
        return torch.rand(3), a + torch.rand(3), torch.rand(3)

    for backend in ("eager", "aot_eager", "inductor"):
        run = plumbline.compile(program, backend=backend)
        for _ in range(2):
            torch.manual_seed(3)
            found = run(torch.ones(3))
            torch.manual_seed(3)
            torch.testing.assert_close(found, plainly(torch.ones(3)))


def test_a_compiled_graph_outlives_its_function():
    """The backward still finds the programs that its graph names."""
    a, w = inputs(3)
    loss = plumbline.compile(lambda a, w: torch.cond(a.sum() > -9, lambda z: z * w, lambda z: z / w, (a,)).sum())(a, w)
    loss.backward()
    torch.testing.assert_close(a.grad, w.detach())
