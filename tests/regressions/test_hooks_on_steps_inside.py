"""Hooks on the `grad_fn` of a tensor that compiled code made got the gradients of the whole graph's step."""

import pytest
import torch

import plumbline


def before_the_step(x):
    y = x.sin()
    y.grad_fn.register_prehook(lambda outgoing: (outgoing[0] * 5,))
    return y.sum()


def behind_the_step(x):
    y = (x * 2).sin()
    y.grad_fn.register_hook(lambda incoming, outgoing: (incoming[0].clamp(max=0.5),))
    return y.sum()


def walked(x):
    y = (x * 2).sin().exp()
    step, names = y.grad_fn, []
    while step is not None:
        names.append(step.name())
        step = step.next_functions[0][0] if step.next_functions else None
    return y.sum(), names


def only_asked_whether_it_is_there(x):
    y = x.sin()
    return (y * 2 if y.grad_fn is not None else y).sum()


PROGRAMS = [before_the_step, behind_the_step, walked, only_asked_whether_it_is_there]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_they_get_the_gradients_of_their_step(program, backend):
    one, two = (torch.tensor([0.1, 0.9], requires_grad=True) for _ in range(2))
    compiled = plumbline.compile(program, backend=backend)
    for _ in range(2):
        (expected, *names), (actual, *ours) = (
            result if isinstance(result, tuple) else (result,) for result in (program(one), compiled(two))
        )
        assert ours == names
        expected.backward()
        actual.backward()
        torch.testing.assert_close(two.grad, one.grad)
