"""The name that a NameError is about, and the name and object of an AttributeError, were lost at a graph break."""

import pytest
import torch

import plumbline


class Empty:
    pass


def of_a_global(thing):
    return not_there_at_all  # noqa: F821 - the error is what is tested


def of_a_free_variable(thing):
    def inner():
        return later

    inner()
    later = 1
    return later


def of_a_variable(thing):
    if thing is None:
        value = 1
    return value


def of_a_number(thing):
    return (1).foo


def of_an_object(thing):
    return thing.foo


def by_getattr(thing):
    return getattr(thing, "foo")  # noqa: B009 - the builtin is what is tested


def of_a_class(thing):
    return type(thing).foo


def of_a_tensor(thing):
    return torch.ones(2).foo


CASES = [of_a_global, of_a_free_variable, of_a_variable, of_a_number, of_an_object, by_getattr, of_a_class, of_a_tensor]


@pytest.mark.parametrize("breaks", [False, True], ids=["whole", "across a break"])
@pytest.mark.parametrize("case", CASES)
def test_names_of_errors(case, breaks):
    thing = Empty()

    def program(x):
        try:
            case(thing)
        except (NameError, AttributeError) as error:
            if breaks:
                print(end="")
            owner = getattr(error, "obj", None)
            return (x + 1).sum().item(), str(error), error.name, type(owner), owner is thing, error
        return None

    x = torch.ones(2)
    given, expected = plumbline.compile(program, backend="eager")(x), program(x)
    assert given[:-1] == expected[:-1]
    assert given[-1].name == expected[-1].name
    assert type(getattr(given[-1], "obj", None)) is type(getattr(expected[-1], "obj", None))
