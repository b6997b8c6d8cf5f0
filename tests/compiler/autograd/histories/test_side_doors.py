"""What is behind an input that a result was not computed from: as in eager, nobody visits it."""

import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest
import torch

import plumbline
from support.torch_release import SAVED_TENSORS_ARE_READ_ONE_BY_ONE

Program = Callable[..., tuple[torch.Tensor, ...]]


class Noting(torch.autograd.Function):
    """Doubles; its backward notes that it ran."""

    notes: ClassVar[list[str]] = []

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        return value * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        Noting.notes.append(f"step {gradient.sum():.4f}")
        return gradient * 2


def apart(x, u, v):
    return u.sin(), x.cos(), v * 3


def crossed(x, u, v):
    return u * x, x * v, v + u


def nested(x, u, v):
    return x.exp(), (x * u).sigmoid(), x * u * v


def with_a_constant_gradient(x, u, v):
    return x * u.sign(), u * v, x.cos()


def with_a_view(x, u, v):
    return u.view(-1)[:2], x * v.exp(), u.t()


def with_a_complex_result(x, u, v):
    return torch.complex(u, v), x * u, x + v


PROGRAMS = [apart, crossed, nested, with_a_constant_gradient, with_a_view, with_a_complex_result]


def written_out(tensor: torch.Tensor | None) -> Any:
    """Return the numbers of a gradient; adding to it gives memory to zeros that are stored nowhere."""
    return None if tensor is None else (tensor + torch.zeros(tensor.shape, dtype=tensor.dtype)).tolist()


def one(results, ends, number):
    results[number].abs().sum().backward()


def each_in_turn(results, ends, number):
    for step in range(3):
        results[(number + step) % 3].abs().sum().backward()


def twice_kept(results, ends, number):
    results[number].abs().sum().backward(retain_graph=True)
    (results[number].abs().sum() + results[number - 1].abs().sum()).backward()


def twice_freed(results, ends, number):
    (results[number] ** 2).abs().sum().backward()
    (results[number] ** 2).abs().sum().backward()


def of_one_end(results, ends, number):
    grads = torch.autograd.grad([results[number].abs().sum()], [ends[number]], allow_unused=True)
    Noting.notes.append(str([written_out(one) for one in grads]))
    (results[number - 1].abs().sum()).backward()


def of_one_end_twice(results, ends, number):
    for _ in range(2):
        grads = torch.autograd.grad([results[number].abs().sum()], ends[1:2], allow_unused=True)
        Noting.notes.append(str([written_out(one) for one in grads]))


def of_all_ends_again(results, ends, number):
    total = results[number].abs().sum() + results[number - 2].abs().sum()
    grads = torch.autograd.grad(total, ends, create_graph=True, allow_unused=True)
    sum((one**2).sum() for one in grads if one is not None and one.requires_grad).backward()


def towards_one_end(results, ends, number):
    total = results[number].abs().sum() + results[number - 1].abs().sum()
    total.backward(inputs=[ends[number]])


def after_a_write(results, ends, number):
    if results[number]._is_view():
        return
    results[number].mul_(2)
    results[number - 1].abs().sum().backward()


WAYS = [
    one,
    each_in_turn,
    twice_kept,
    twice_freed,
    of_one_end,
    of_one_end_twice,
    of_all_ends_again,
    towards_one_end,
    after_a_write,
]


def observed(program: Program, way: Callable[..., None], number: int, hooks: str) -> list[Any]:
    """Return everything that one can see of a backward."""
    generator = torch.Generator().manual_seed(3)
    ends = [torch.rand(2, 2, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(3)]
    Noting.notes.clear()

    def note(name):
        def hook(gradient):
            Noting.notes.append(f"{name} {None if gradient is None else gradient.abs().sum().item():.6f}")

        return hook

    if hooks == "leaves":
        for place, leaf in enumerate(ends):
            leaf.register_hook(note(f"leaf {place}"))
            late = note(f"late {place}")
            leaf.register_post_accumulate_grad_hook(partial(lambda late, leaf: late(leaf.grad), late))
        inputs = ends
    else:
        inputs = [Noting.apply(leaf) for leaf in ends] if hooks == "functions" else [leaf * 1 for leaf in ends]
        for place, value in enumerate(inputs):
            value.register_hook(note(f"input {place}"))
            value.retain_grad()
    results = program(*inputs)
    try:
        way(results, ends, number)
        failure = ""
    except RuntimeError as error:
        failure = str(error)[:40]
    seen: list[Any] = [sorted(Noting.notes), failure]
    seen += [written_out(leaf.grad) for leaf in ends]
    seen += [written_out(value.grad) for value in inputs if not value.is_leaf]
    return seen


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request):
    """Each program with its compiled form, made once for all ways of going back."""
    return request.param, plumbline.compile(request.param, backend="aot_eager")


@pytest.mark.parametrize("hooks", ["leaves", "functions", "values"])
@pytest.mark.parametrize("way", WAYS)
def test_as_in_eager(program, way, hooks):
    plain, compiled = program
    for number in range(3):
        mine = observed(compiled, way, number, hooks)
        if (
            way is after_a_write
            and not SAVED_TENSORS_ARE_READ_ONE_BY_ONE
            and mine[1].startswith("one of the variables")
        ):
            continue
        assert mine == observed(plain, way, number, hooks), number


def test_a_step_without_a_derivative_is_not_asked():
    x, w = torch.rand(3, requires_grad=True), torch.rand(3, requires_grad=True)
    compiled = plumbline.compile(lambda x, u: (u.sin(), x.cos()), backend="aot_eager")
    first, second = compiled(x, (w * 1).unique_consecutive())
    second.sum().backward()
    assert w.grad is None
    with pytest.raises(NotImplementedError, match="unique_consecutive"):
        first.sum().backward()


def test_nothing_outlives_the_backward():
    compiled = plumbline.compile(lambda x, u: (u.sin(), x.cos()), backend="aot_eager")
    gc.disable()
    try:
        for both in (True, False):
            x, w = torch.rand(3, requires_grad=True), torch.rand(3, requires_grad=True)
            u = w * 2
            gone = [weakref.ref(u)]
            first, second = compiled(x, u)
            (first.sum() + second.sum() if both else second.sum()).backward()
            gone += [weakref.ref(first.grad_fn), weakref.ref(first), weakref.ref(x)]
            del x, u, w, first, second
            assert [ref() for ref in gone] == [None] * 4
    finally:
        gc.enable()
