"""Behind a break a program may look at what compiled code lacks: other variables, steps of history, versions."""

import sys

import pytest
import torch

import plumbline


def names_of_the_caller():
    return sorted(sys._getframe(1).f_locals)


def names_further_out():
    return sorted(sys._getframe(2).f_locals)


def through_a_helper():
    return names_further_out()


def variables(x, unused=3):
    result = x + 1
    print(end="")
    return result, names_of_the_caller()


def variables_by_way_of_another(x, unused=3):
    result = x + 1
    print(end="")
    return result, through_a_helper()


def variables_seen_by_an_inner_function(x, unused=3):
    def look():
        return sys._getframe(1).f_locals.get("unused")

    print(end="")
    seen = look()
    return x + 1, seen


def version_of_what_was_written(x):
    made = x * 1
    made.add_(1)
    first = made._version
    row = made[0]
    row.mul_(2)
    return made, first, made._version, row._version


def version_at_the_end(x):
    made = x * 1
    made.add_(1)
    made[0].mul_(2)
    before = made._version
    made += 1
    return made, before, made._version


def hook_on_a_step(x):
    counts = []
    made = x * 2
    made.register_hook(lambda gradient: (counts.append(gradient.sum().item()), gradient * 2)[1])
    result = made.exp()
    made.grad_fn.register_prehook(lambda gradients: (counts.append(len(gradients)), (gradients[0] * 100,))[1])
    result.sum().backward()
    return x.grad, counts


PROGRAMS = [
    variables,
    variables_by_way_of_another,
    variables_seen_by_an_inner_function,
    version_of_what_was_written,
    version_at_the_end,
    hook_on_a_step,
]


def outcome(program, gradients):
    first, *others = program(torch.arange(6.0).reshape(2, 3).div_(8).requires_grad_(gradients))
    return (first.tolist(), *others)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_plain_python(program, backend):
    gradients = program is hook_on_a_step
    wanted = outcome(program, gradients)
    found = outcome(plumbline.compile(program, backend=backend), gradients)
    assert found[1:] == wanted[1:]
    torch.testing.assert_close(torch.tensor(found[0]), torch.tensor(wanted[0]))
