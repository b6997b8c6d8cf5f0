"""A walk over what objects hold asked their own code for it: an object that answers 1 to everything ended a capture."""

import pytest
import torch

from plumbline.compiler.base.events import CompilerFailed, recording
from support.programs import compiled


class AnswersOne:
    def __getattribute__(self, name):
        return 1


class AnswersAndIsRaised(Exception):
    def __getattribute__(self, name):
        return 1


class HasOtherArguments(Exception):
    args = property(lambda self: (1, 2))


OBJECTS = [kind() for kind in (AnswersOne, AnswersAndIsRaised, HasOtherArguments)]


def held_and_let_go(x, objects):
    held = list(objects)
    y = x + len(held)
    del held
    OBJECTS  # noqa: B018  it is let go at once
    return y


def raised(x, objects):
    y = x
    for each in objects[1:]:
        try:
            raise each
        except Exception as error:
            y = y * 2 + (type(error) is HasOtherArguments)
    return y


def asked(x, objects):
    return x + len(objects[2].args) + objects[0].anything, str(objects[2]), objects[1].args


@pytest.mark.parametrize("program", [held_and_let_go, raised, asked])
def test_it_does_as_plain_python_does(program):
    run = compiled(program)
    with recording() as events:
        for _ in range(2):
            actual, expected = run(torch.ones(2), OBJECTS), program(torch.ones(2), OBJECTS)
            for found, wanted in zip(actual, expected, strict=True):
                assert torch.equal(found, wanted) if isinstance(found, torch.Tensor) else found == wanted
    assert not [event for event in events if isinstance(event, CompilerFailed)]
