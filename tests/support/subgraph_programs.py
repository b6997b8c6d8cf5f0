"""Programs with calls that run functions as the data says, each with the same written as plain Python."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._higher_order_ops.map import map as over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils.checkpoint import checkpoint

Function = Callable[..., Any]


@dataclass(frozen=True)
class Twins:
    """A program of two tensors, and what it means; dynamic: whether its sizes may be open."""

    name: str
    program: Function
    meaning: Function
    dynamic: bool = True


def choose(condition: torch.Tensor, first: Function, second: Function, operands: tuple[Any, ...] = ()) -> Any:
    """Be `torch.cond` in plain Python."""
    return (first if condition else second)(*operands)


def repeat(condition: Function, body: Function, carried: tuple[Any, ...]) -> Any:
    """Be `while_loop` in plain Python."""
    while condition(*carried):
        carried = body(*carried)
    return carried


def fold(function: Function, carried: Any, elements: torch.Tensor, *, reverse: bool = False) -> Any:
    """Be `scan` in plain Python."""
    outputs = []
    for element in reversed(elements.unbind()) if reverse else elements.unbind():
        carried, output = function(carried, element)
        outputs.append(output)
    return carried, torch.stack(outputs[::-1] if reverse else outputs)


def each(function: Function, elements: torch.Tensor, *rest: Any) -> torch.Tensor:
    """Be `map` in plain Python."""
    return torch.stack([function(element, *rest) for element in elements.unbind()])


def select(condition: torch.Tensor, first: Function, second: Function, operands: tuple[Any, ...]) -> torch.Tensor:
    """Be `torch.cond` under vmap, where conditions differ."""
    return torch.where(condition, first(*operands), second(*operands))


ALL: list[Twins] = []


def _twins(ways: tuple[Function, ...], plain_ways: tuple[Function, ...], **settings: Any) -> Callable[..., Any]:
    def add(make: Callable[..., Function]) -> Callable[..., Function]:
        ALL.append(Twins(make.__name__, make(*ways), make(*plain_ways), **settings))
        return make

    return add


@_twins((torch.cond,), (choose,))
def reads_from_outside(cond: Function) -> Function:
    def program(a, w):
        k = w.sin()
        first = cond(a.sum() > 0, lambda z: z * k, lambda z: z / (k + 3), (a,))
        return first + cond(w.sum() > 0, lambda: a * w, lambda: a - w, ())

    return program


@_twins((torch.cond,), (choose,))
def nested_three_deep(cond: Function) -> Function:
    def program(a, w):
        def innermost(z):
            return cond(z.mean() > 0.1, lambda u: u * w.cos(), lambda u: u.exp() * a, (z,))

        def inner(z):
            return cond(z.max() > 0, innermost, lambda u: u + w, (z,))

        return cond(a.sum() > -100, inner, lambda z: z.cos() * 1, (a * w,))

    return program


@_twins((torch.cond,), (choose,))
def results_in_containers(cond: Function) -> Function:
    def program(a, w):
        n = a.shape[0]
        first = lambda z: {"p": z * w, "q": [z.sin() * n]}  # noqa: E731  two branches side by side
        second = lambda z: {"p": z.cos(), "q": [z * 2]}  # noqa: E731  as the line above
        found = cond(a.sum() > 0, first, second, (a,))
        return found["p"] * found["q"][0]

    return program


@_twins((torch.cond,), (choose,))
def a_result_without_gradient(cond: Function) -> Function:
    def program(a, w):
        x, y, mask = cond(
            a.sum() > 0,
            lambda z: (z * 1, w.detach() * 2, z > 0),
            lambda z: (z.cos(), w.detach() * 3, z < 0),
            (a,),
        )
        return torch.where(mask, x, y) * w

    return program


@_twins((torch.cond,), (choose,))
def the_other_branch_is_infinite(cond: Function) -> Function:
    return lambda a, w: cond(a.sum() > -100, lambda z: z * w, lambda z: (z * 0).log() / 0, (a,))


@_twins((torch.cond,), (choose,))
def results_are_written_to(cond: Function) -> Function:
    def program(a, w):
        x, y = cond(a.sum() > 0, lambda z: (z * w, z.sin()), lambda z: (z.cos(), z * 2), (a,))
        x.mul_(2)
        y[0] = x[0]
        return x + y

    return program


@_twins((torch.cond,), (choose,))
def under_autocast(cond: Function) -> Function:
    def program(a, w):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return cond(a.sum() > -100, lambda z: (z @ w.t()).float().relu(), lambda z: (z @ a.t()).float(), (a,))

    return program


@_twins((torch.cond,), (choose,))
def checkpointed(cond: Function) -> Function:
    def program(a, w):
        return checkpoint(
            lambda r: cond(r.sum() > -100, lambda z: z.sin() * w, lambda z: z.cos() * 1, (r,)), a, use_reentrant=False
        )

    return program


@_twins((while_loop, torch.cond), (repeat, choose))
def repeated_by_value(loop: Function, cond: Function) -> Function:
    def program(a, w):
        def body(i, z):
            return i + 1, cond(z.sum() > 0, lambda u: u * 0.5 + w, lambda u: u.sin() - w, (z,))

        _, z = loop(lambda i, z: i < 3, body, (torch.tensor(0), a))
        (grown,) = loop(lambda z: z.norm() < 50, lambda z: (z * 1.7 + w.abs() * 0.1,), (z,))
        return grown

    return program


@_twins((while_loop, scan), (repeat, fold))
def reads_what_it_begins_with(loop: Function, fold_it: Function) -> Function:
    """What is handed on changes; the same tensor read from outside does not."""

    def program(a, w):
        _, z = loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * a.sin()), (torch.tensor(0), a))
        begin, elements = w[0] * 1, torch.cat([z] * 25)
        last, given = fold_it(lambda c, x: ((c * begin + x * elements[0]).tanh() * 0.1, c * begin), begin, elements)
        return last + given.sum(0)

    return program


@_twins((scan, torch.cond), (fold, choose))
def folded_backwards(fold_it: Function, cond: Function) -> Function:
    def program(a, w):
        def step(c, x):
            new = cond(x.sum() > 0, lambda u, v: u * 0.5 + v * w[0], lambda u, v: u - v, (c, x))
            return new, new * x

        last, all_of_them = fold_it(step, a[0] * 1, torch.cat([a] * 25), reverse=True)
        return last + all_of_them.sum(0)

    return program


@_twins((over,), (each,))
def each_element(map_it: Function) -> Function:
    return lambda a, w: map_it(lambda x, v: (x * v[0]).sin(), torch.cat([a] * 25), w)


@_twins((torch.cond,), (choose,), dynamic=False)
def one_choice_for_a_batch(cond: Function) -> Function:
    return lambda a, w: torch.vmap(
        lambda r, v: cond(w.sum() > 0, lambda z: z.sin() * v, lambda z: z.cos() * w[0], (r,))
    )(a, w)


@_twins((torch.cond,), (select,), dynamic=False)
def a_choice_for_each_of_a_batch(cond: Function) -> Function:
    return lambda a, w: torch.vmap(
        lambda r, v: cond(r.sum() > 0, lambda z: z.sin() * v, lambda z: z.cos() * w[0], (r,))
    )(a, w)


@_twins((torch.cond,), (select,), dynamic=False)
def derivatives_in_a_batch(cond: Function) -> Function:
    def energy(r, v):
        return cond(r.sum() > 0, lambda z: z.sin() * v, lambda z: z.cos() * v, (r,)).sum()

    return lambda a, w: torch.vmap(torch.func.grad(energy))(a, w)


@_twins((scan,), (fold,), dynamic=False)
def folds_in_a_batch(fold_it: Function) -> Function:
    return lambda a, w: torch.vmap(lambda r: fold_it(lambda c, x: (c * x, c + x), r[0] * 1, r)[1])(a) * w
