"""`getattr(x.add, name, default)` broke the graph: a method written in C has its type's attributes and no others."""

import pytest
import torch

import plumbline


class Plain:
    pass


def of_a_tensor(x):
    return x + getattr(x.add, "lacking", 1)


def of_an_object(x):
    kinds = [getattr(getattr(Plain(), name), "lacking", False) for name in dir(Plain) if name != "__weakref__"]
    return x + any(kinds)


def of_a_list(x):
    return x + hasattr([].append, "lacking")


@pytest.mark.parametrize("function", [of_a_tensor, of_an_object, of_a_list])
def test_the_default_is_given(function):
    compiled = plumbline.compile(function, backend="eager", fullgraph=True)
    assert torch.equal(compiled(torch.ones(2)), function(torch.ones(2)))


@pytest.mark.parametrize("method", [lambda x: x.add, lambda x: Plain().__delattr__])
def test_the_error_is_pythons(method):
    def read(x):
        try:
            return method(x).lacking
        except AttributeError as error:
            return str(error)

    x = torch.ones(2)
    assert plumbline.compile(read, backend="eager")(x) == read(x)
