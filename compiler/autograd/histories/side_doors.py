"""Inputs that only some results of a compiled graph lead to: their histories are reached by a side door.

A compiled graph is one step of history, and the engine visits every step behind it, whichever result a backward starts
from. Behind an input that this result was not computed from, hooks would be called without a gradient, a step of the
program's own would make zeros of that, and one that has no derivative would raise. So such an input stands behind a
step of its own, the door; and the results that were computed from it get a step in front of the graph's, a gate, with
the door behind it as well:

    result -- gate --+-- graph -- inputs of all results
                     +-- door --- inputs of these results

The graph leaves gradients at the door, for the backward that runs. The engine runs the steps that were made last first,
the graph before its doors. Where it does not (the door alone is wanted, or threads have made parts of the history), the
door asks the graph for the gradients of what its gates were given.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from ...base.torch_facts import apply_function, keeps_graph, running_backward, set_version, will_run
from .history_reach import GradientPaths

Gradients = tuple[torch.Tensor | None, ...]


class Ask(Protocol):
    """Returns a gradient or None per input; ends: nobody needs what was kept for these results any more."""

    def __call__(self, gradients: Gradients, /, *, ends: bool) -> Gradients:
        """Return the gradients. gradients: one for each of what the graph's step gives."""


@dataclass(slots=True, eq=False)
class _Heard:
    """What the gates in front of a door were given in one backward, by result, and how the graph is asked for more."""

    step: Any
    ask: Ask
    count: int
    gradients: dict[int, torch.Tensor] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Post:
    """What waits at a door, by the number of the backward it is for. over: the last backward that has passed."""

    places: tuple[int, ...]
    left: dict[int, Gradients] = field(default_factory=dict)
    seen: dict[int, _Heard] = field(default_factory=dict)
    over: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class SideDoor:
    """One call's door. tangents: the results with a gate, by place.  token: stands behind the gates.

    It must not hold the graph's step, which holds it.
    """

    tangents: frozenset[int]
    token: torch.Tensor
    post: _Post

    @property
    def is_wanted(self) -> bool:
        """Return whether the backward that runs now comes through."""
        return will_run(self.token.grad_fn) and self.post.over != running_backward()


class _Door(torch.autograd.Function):
    """Hands on the gradients that were left for it."""

    @staticmethod
    def forward(ctx: Any, post: _Post, *inputs: torch.Tensor) -> torch.Tensor:
        """Return a token on the device of the inputs: the engine has a queue for each."""
        ctx.post = post
        ctx.set_materialize_grads(False)
        return torch.empty(0, device=inputs[0].device)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor | None) -> Any:
        """Return what was left, or ask the graph for it."""
        del gradient
        post, number = ctx.post, running_backward()
        post.over = number
        seen, left = post.seen.pop(number, None), post.left.pop(number, None)
        if left is None and seen is not None:
            ends = not (keeps_graph() or will_run(seen.step))
            found = seen.ask(tuple(seen.gradients.get(place) for place in range(seen.count)), ends=ends)
            left = tuple(found[place] for place in post.places)
            if ends:
                seen.step.maybe_clear_saved_tensors()
        return (None, *(left or (None,) * len(post.places)))


class _Gate(torch.autograd.Function):
    """Tells doors of the gradient of a result. The result is the same tensor, one step further."""

    @staticmethod
    def forward(
        ctx: Any,
        result: torch.Tensor,
        place: int,
        seen: Callable[[], _Heard],
        posts: list[_Post],
        *tokens: torch.Tensor,
    ) -> torch.Tensor:
        """Return the result."""
        ctx.place, ctx.seen, ctx.posts = place, seen, posts
        ctx.doors = [token.grad_fn for token in tokens]
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor | None) -> Any:
        """Hand the gradient on."""
        number = running_backward()
        for door, post in zip(ctx.doors, ctx.posts, strict=True):
            if gradient is not None and will_run(door):
                post.seen.setdefault(number, ctx.seen()).gradients[ctx.place] = gradient
        return (gradient, None, None, None, *(None,) * len(ctx.doors))


def open_doors(paths: GradientPaths, tensors: list[Any]) -> tuple[SideDoor, ...]:
    """Return the doors of a call, and put in the place of each input behind one its value without its history.

    A leaf without hooks needs no door: nobody notices that it is visited without a gradient.
    """
    doors = []
    for group in paths.partial:
        places = tuple(place for place in group.inputs if paths.hooked or _is_noticed(tensors[place]))
        if places:
            post = _Post(places)
            token = apply_function(_Door, post, *(tensors[place] for place in places))
            for place in places:
                tensors[place] = tensors[place].detach().requires_grad_()
            doors.append(SideDoor(group.tangents, token, post))
    return tuple(doors)


def put_gates(
    doors: Sequence[SideDoor], results: Sequence[torch.Tensor], tangents: Sequence[int], step: Any, ask: Ask
) -> None:
    """Put a gate in front of each result that leads through a door.

    results: of the graph, of which `tangents` have a gradient.  step: of the graph.
    """
    count = len(results) + 1  # the anchor is behind them
    for number, place in enumerate(tangents):
        behind = [door for door in doors if number in door.tangents]
        if behind:
            result, posts, tokens = results[place], [door.post for door in behind], [door.token for door in behind]
            version = result._version
            apply_function(_Gate, result, place, lambda: _Heard(step, ask, count), posts, *tokens)
            set_version(result, version)  # it has not changed


def left_at(doors: Iterable[SideDoor], gradients: Sequence[torch.Tensor | None]) -> Gradients:
    """Leave gradients at doors; return those for the inputs that have none. gradients: one for each input."""
    rest = list(gradients)
    for door in doors:
        if door.is_wanted:
            door.post.left[running_backward()] = tuple(gradients[place] for place in door.post.places)
        for place in door.post.places:
            rest[place] = None
    return tuple(rest)


def _is_noticed(tensor: torch.Tensor) -> bool:
    late: object = getattr(tensor, "_post_accumulate_grad_hooks", None)
    return bool(tensor.grad_fn is not None or tensor._backward_hooks or late)
