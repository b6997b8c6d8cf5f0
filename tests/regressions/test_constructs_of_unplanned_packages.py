"""Constructs that torchmin, pypose and geoopt use: the old vmap, a generator of classes, tensors of a class."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
import torch
from torch._vmap_internals import _vmap

import plumbline


class Lie(torch.Tensor):
    """Hands the default a generator of classes, as pypose does."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Iterable[type], args: Any = (), kwargs: Mapping[str, Any] = {}
    ) -> Any:
        plain = (torch.Tensor if kind is Lie else kind for kind in types)
        return torch.Tensor.__torch_function__(func, plain, args, kwargs)


class Point(torch.Tensor):
    """Is made with `requires_grad` by position, as geoopt does."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __new__(cls, data: torch.Tensor, requires_grad: bool = False) -> Any:
        return torch.Tensor._make_subclass(cls, data.data, requires_grad)


def test_the_old_vmap_runs_as_a_whole_beside_graphs() -> None:
    def program(x: torch.Tensor) -> Any:
        y = x * 2
        return _vmap(lambda row: row * y)(torch.eye(3)) + y

    x = torch.rand(3)
    assert torch.equal(plumbline.compile(program)(x), program(x))


def test_a_compiled_function_inside_the_old_vmap_is_no_internal_error() -> None:
    def row(v: torch.Tensor) -> torch.Tensor:
        return v * 2 + 1

    assert torch.equal(_vmap(plumbline.compile(row))(torch.eye(3)), row(torch.eye(3)))
    explanation: list[str] = []
    _vmap(lambda v: (explanation.append(str(plumbline.explain(row, v))), v)[1])(torch.eye(3))
    assert "internal error" not in explanation[0]
    assert "old vmap" in explanation[0]


def test_classes_come_as_a_generator() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1

    x = torch.ones(3).as_subclass(Lie)
    explanation = plumbline.explain(program, x)
    assert "1 graph, with 0 graph breaks" in str(explanation)
    found = plumbline.compile(program)(x)
    assert type(found) is type(program(x)) is torch.Tensor  # the default was asked of `torch.Tensor`
    assert torch.equal(found, program(x))


def test_a_tensor_of_a_class_is_made_without_a_gradient_by_position() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return Point(x) * 2

    x = torch.ones(3)
    assert "1 graph, with 0 graph breaks" in str(plumbline.explain(program, x))
    assert torch.equal(plumbline.compile(program)(x), program(x))


class Named(torch.Tensor):
    """Has nothing but a name of its own."""


def _made(x: torch.Tensor) -> torch.Tensor:
    return x.as_subclass(Named).requires_grad_()


def _of_a_detached_one(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).as_subclass(Named).detach().requires_grad_(True)


def _with_no_gradient(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).as_subclass(Named).requires_grad_(False)


@pytest.mark.parametrize("program", [_made, _of_a_detached_one, _with_no_gradient])
def test_a_tensor_of_a_class_that_shall_require_a_gradient_is_a_leaf(program: Any) -> None:
    found, expected = plumbline.compile(program)(torch.ones(3)), program(torch.ones(3))
    assert (found.is_leaf, found.requires_grad, found.grad_fn) == (expected.is_leaf, expected.requires_grad, None)
    assert type(found) is type(expected) is Named
    if found.requires_grad:
        (found.as_subclass(torch.Tensor) * 3).sum().backward()
        assert torch.equal(found.grad, torch.full((3,), 3.0))


def test_an_argument_of_a_class_that_shall_require_a_gradient_does() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        x.requires_grad_()
        return x * 2

    given = torch.ones(3).as_subclass(Named)
    found = plumbline.compile(program)(given)
    assert given.requires_grad
    assert given.is_leaf
    assert found.requires_grad
