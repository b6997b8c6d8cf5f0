"""`cast(Dict[str, List[int]], x)` broke the graph: a type made in the call is known like any other."""

import typing

import pytest
import torch

import plumbline

as_type = typing.cast
DictOf, ListOf = typing.Dict, typing.List  # noqa: UP006 - the old names are what is subscripted
TupleOf, UnionOf = typing.Tuple, typing.Union  # noqa: UP006 - as above
CallableOf, OptionalOf = typing.Callable, typing.Optional
Alias = ListOf[int]


def nested(x):
    return as_type(DictOf[str, ListOf[int]], x) * 2


def several(x):
    return as_type(UnionOf[torch.Tensor, TupleOf[torch.Tensor, ...]], x) * 2


def with_a_list(x):
    return as_type(CallableOf[[ListOf[int], str], OptionalOf[TupleOf[int, ...]]], x) * 2


def text(x):
    return x * len(repr(DictOf[str, Alias]))


@pytest.mark.parametrize("function", [nested, several, with_a_list, text])
def test_one_graph(function):
    x = torch.ones(2)
    assert torch.equal(plumbline.compile(function, backend="eager", fullgraph=True)(x), function(x))


def test_an_alias_that_changes_is_seen(monkeypatch):
    compiled = plumbline.compile(text, backend="eager", fullgraph=True)
    x = torch.ones(2)
    assert torch.equal(compiled(x), text(x))
    monkeypatch.setitem(globals(), "Alias", ListOf[OptionalOf[int]])
    assert torch.equal(compiled(x), text(x))
