"""A call that writes one tensor, or its memory, twice wrote it once: both values began with the old one."""

import pytest
import torch

import plumbline

BACKENDS = ["eager", "aot_eager", "inductor"]


@torch.library.custom_op("written_twice::both", mutates_args={"a", "b"})
def both(a: torch.Tensor, b: torch.Tensor) -> None:
    a.mul_(2)
    b.add_(3)


@both.register_fake
def _(a, b):
    return None


def in_a_list(a, b):
    torch._foreach_mul_([a, b, a], 2.0)


def through_a_view_of_all(a, b):
    torch._foreach_mul_([a, b, a.view(-1)], 2.0)


def through_a_part(a, b):
    torch._foreach_add_([a, b, a[:1]], 1.0)


def crossed(a, b):
    torch._foreach_add_([a, b], [b, a])


def by_an_operator(a, b):
    both(a, a)


def by_an_operator_through_a_view(a, b):
    both(a, a.view(-1))


def by_clipping(a, b):
    a.grad = torch.tensor([5.0, 10.0])
    torch.nn.utils.clip_grad_norm_([a, a], 1.0)
    a.add_(a.grad)


def two_arguments(a, b):
    torch._foreach_mul_([a, b], 3.0)


WRITERS = [
    in_a_list,
    through_a_view_of_all,
    through_a_part,
    crossed,
    by_an_operator,
    by_an_operator_through_a_view,
    by_clipping,
    two_arguments,
]


@pytest.mark.parametrize("made_inside", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("write", WRITERS)
def test_both_writes_are_made(write, backend, made_inside):
    def program(a, b):
        if made_inside:
            a, b = a * 1, (b * 1 if b is not a else b)
        write(a, b)
        return a + 1, b + 1

    def given():
        a = torch.tensor([1.0, 2.0])
        return a, (a if write is two_arguments else torch.tensor([3.0, 5.0]))

    mine, other = given(), given()
    assert str(plumbline.compile(program, backend=backend)(*mine)) == str(program(*other))
    assert str(mine) == str(other)
