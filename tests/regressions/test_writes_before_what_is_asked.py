"""What a branch asks of a small tensor is computed at entry, with every write before it, whoever made it.

A write inside a transform's function was not seen, nor one to a list of tensors.
"""

import pytest
import torch

import plumbline


def new_data(state):
    state.data = torch.ones(2) * 3


def data_of_itself(state):
    state.data = state * 2 + 1


def other_memory(state):
    state.set_(torch.ones(2) * 4)


def through_a_detached_one(state):
    state.detach().add_(1)


def under_vmap(state):
    torch.func.vmap(lambda row: row.add_(1))(state)


def under_two_transforms(state):
    torch.func.vmap(torch.func.vmap(lambda one: one.add_(1)))(state.view(1, 2))


def to_views_in_a_list(state):
    torch._foreach_add_(list(state.unbind()), 1)


def without_gradients(state):
    with torch.no_grad():
        state.copy_(state + 1)


def by_out(state):
    torch.add(state, 1, out=state)


def by_an_initialiser(state):
    torch.nn.init.constant_(state, 4.0)


def after_a_resize(state):
    state.resize_(2).fill_(9)


WRITERS = [
    new_data,
    data_of_itself,
    other_memory,
    through_a_detached_one,
    under_vmap,
    under_two_transforms,
    to_views_in_a_list,
    without_gradients,
    by_out,
    by_an_initialiser,
    after_a_resize,
]


@pytest.mark.parametrize("made_inside", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("write", WRITERS)
def test_a_branch_sees_the_write(write, backend, made_inside):
    def program(state, x):
        written = state + 0 if made_inside else state
        write(written)
        return x * max(1.0, written.sum() - 2)

    compiled = plumbline.compile(program, backend=backend)
    mine, other = torch.zeros(2), torch.zeros(2)
    for _ in range(3):
        assert torch.equal(compiled(mine, torch.ones(1)), program(other, torch.ones(1)))
        assert torch.equal(mine, other)
