"""What a transformed function changes outside: a tensor that leaves its transform was an output no graph could give."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Broke, CompilerFailed, RanEagerly, recording

KEPT = []


def before_and_inside(x):
    KEPT.append(0)
    return torch.vmap(lambda row: (KEPT.append(1), row + 1)[1])(x)


def a_tensor_leaves(x):
    KEPT.append(0)
    return torch.vmap(lambda row: (KEPT.append(row), row + 1)[1])(x)


def a_tensor_leaves_in_a_list_of_the_caller(x):
    seen = []
    result = torch.vmap(lambda row: (seen.append(row * 2), row + 1)[1])(x)
    KEPT.append(seen)
    return result


def a_shape_leaves(x):
    return torch.func.grad(lambda x: (KEPT.append(x.shape), x.sum())[1])(x)


def twice(x):
    return torch.vmap(lambda row: (KEPT.append(1), row + 1)[1], chunk_size=1)(x)


def one_after_the_other(x):
    inner = torch.func.grad(lambda x: (KEPT.append("inner"), x.sin().sum())[1])
    return torch.func.jacrev(lambda x: (KEPT.append("outer"), inner(x))[1])(x)


def shown(value):
    if isinstance(value, list):
        return [shown(item) for item in value]
    return "tensor" if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("program", "whole"),
    [
        (before_and_inside, True),
        (a_tensor_leaves, False),
        (a_tensor_leaves_in_a_list_of_the_caller, False),
        (a_shape_leaves, True),
        (twice, False),
        (one_after_the_other, True),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_effects_are_eagers(program, whole, backend):
    plumbline.reset()
    x = torch.ones(2, 3)
    KEPT.clear()
    expected, kept = program(x), shown(KEPT)
    run = plumbline.compile(program, backend=backend)
    for _ in range(2):
        KEPT.clear()
        with recording() as events:
            assert torch.equal(run(x), expected)
        assert shown(KEPT) == kept
        assert not [event for event in events if isinstance(event, CompilerFailed)]
        assert not (whole and [event for event in events if isinstance(event, Broke | RanEagerly)])
