"""`cast(Dict[str, List[int]], x)` broke the graph: a type made in the call is known like any other."""
# ruff: noqa: UP006, UP007, UP035, UP045, TC006 - the old names are what is subscripted

from typing import Callable, Dict, List, Optional, Tuple, Union, cast

import pytest
import torch

import plumbline

Alias = List[int]


def nested(x):
    return cast(Dict[str, List[int]], x) * 2


def several(x):
    return cast(Union[torch.Tensor, Tuple[torch.Tensor, ...]], x) * 2


def with_a_list(x):
    return cast(Callable[[List[int], str], Optional[Tuple[int, ...]]], x) * 2


def text(x):
    return x * len(repr(Dict[str, Alias]))


@pytest.mark.parametrize("function", [nested, several, with_a_list, text])
def test_one_graph(function):
    x = torch.ones(2)
    assert torch.equal(plumbline.compile(function, backend="eager", fullgraph=True)(x), function(x))


def test_an_alias_that_changes_is_seen(monkeypatch):
    compiled = plumbline.compile(text, backend="eager", fullgraph=True)
    x = torch.ones(2)
    assert torch.equal(compiled(x), text(x))
    monkeypatch.setitem(globals(), "Alias", List[Optional[int]])
    assert torch.equal(compiled(x), text(x))
