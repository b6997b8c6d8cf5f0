"""`swap_tensors` refuses tensors that something refers to weakly, and capture left such references to inputs."""

import weakref

import pytest
import torch

import plumbline

BACKENDS = ["eager", "aot_eager", "inductor"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_input_is_swapped_inside(backend):
    def program(state, x):
        torch.utils.swap_tensors(state, torch.full((2,), 6.0))
        return x + state

    compiled = plumbline.compile(program, backend=backend)
    for _ in range(2):
        state = torch.zeros(2)
        assert torch.equal(compiled(state, torch.ones(1)), torch.full((2,), 7.0))
        assert torch.equal(state, torch.full((2,), 6.0))


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_refers_to_parameters_and_inputs_afterwards(backend, dynamic):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    compiled = plumbline.compile(model, backend=backend, dynamic=dynamic)
    for rows in (2, 5):
        x = torch.randn(rows, 3)
        compiled(x).sum().backward()
        for tensor in (*model.state_dict(keep_vars=True).values(), x):
            assert not weakref.getweakrefs(tensor)


@pytest.mark.parametrize("results", [1, 3])
@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_refers_to_them_after_the_backward_of_results_that_live_on(backend, results):
    model = torch.nn.Linear(2, 2)
    compiled = plumbline.compile(lambda x: [(model(x) * n).sum() for n in range(results)], backend=backend)
    losses = compiled(torch.ones(1, 2))
    sum(losses).backward()
    torch.utils.swap_tensors(model.weight, torch.nn.Parameter(torch.ones(2, 2)))
    with pytest.raises(RuntimeError, match="a second time"):
        losses[0].backward()
