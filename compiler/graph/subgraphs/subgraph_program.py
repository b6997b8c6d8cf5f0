"""What runs at a call with subgraphs, in terms of its bodies: one of two, one again and again, one per element.

A program says in which order its bodies run and on what; how a body runs, as it was captured or as compiled code, is
its caller's. Programs are differentiated by running them again under autograd (`GradientOfProgram`), as torch does, and
taken over a batch by rules of their own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from ...base.torch_facts import lazy_module
from ..fx_nodes import add_call, add_output
from ..graph_interpreter import interpreted
from ..node_values import outputs, placeholders

Tensors = Sequence[torch.Tensor]
Numbers = Sequence[Any]
BodyCall = Callable[..., Sequence[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Subgraph:
    """A captured function as a graph that gives a flat tuple of tensors.

    reads: for each of its arguments a place among the tensors of the call, or `~place` among its numbers.
    """

    gm: fx.GraphModule
    reads: tuple[int, ...]

    def arguments(self, tensors: Tensors, numbers: Numbers) -> list[Any]:
        """Return what the body is called with."""
        return [tensors[place] if place >= 0 else numbers[~place] for place in self.reads]


@dataclass(frozen=True, slots=True, eq=False)
class SubgraphProgram:
    """A call with subgraphs.

    differentiable: for each result whether gradients flow through it.  draws: whether a body draws random numbers.
    """

    bodies: tuple[Subgraph, ...]
    differentiable: tuple[bool, ...]
    draws: bool = False

    def always_batched(self, inputs: int) -> Sequence[int]:
        """Return which of the inputs are given in batches wherever the program runs over a batch."""
        del inputs
        return ()

    def input_dimension(self, place: int) -> int:
        """Return where a batch stands in an input."""
        del place
        return 0

    def result_dimension(self, place: int) -> int:
        """Return where a batch stands in a result."""
        del place
        return 0

    def run(self, bodies: Sequence[BodyCall], tensors: Tensors, numbers: Numbers) -> list[torch.Tensor]:
        """Return the results; bodies: how each of them runs."""
        raise NotImplementedError

    def looks(self, bodies: Sequence[BodyCall], tensors: Tensors, numbers: Numbers) -> list[torch.Tensor]:
        """Return fake tensors like the results, where no data is known."""
        raise NotImplementedError

    def batched(self, flags: tuple[bool, ...], batch: int) -> SubgraphProgram:
        """Return the program over a batch: flags say which inputs have one; all results have."""
        raise NotImplementedError(f"{type(self).__name__} over a batch")


def _fresh(tensors: Tensors) -> list[torch.Tensor]:
    return [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device) for t in tensors]


@dataclass(frozen=True, slots=True, eq=False)
class ChosenBody(SubgraphProgram):
    """`cond`: the first tensor chooses between two bodies."""

    def run(self, bodies: Sequence[BodyCall], tensors: Tensors, numbers: Numbers) -> list[torch.Tensor]:
        """Run the body that the predicate chooses."""
        chosen = 0 if tensors[0] else 1
        return list(bodies[chosen](*self.bodies[chosen].arguments(tensors, numbers)))

    def looks(self, bodies: Sequence[BodyCall], tensors: Tensors, numbers: Numbers) -> list[torch.Tensor]:
        """Return what the first body gives: both give alike."""
        return _fresh(bodies[0](*self.bodies[0].arguments(tensors, numbers)))

    def batched(self, flags: tuple[bool, ...], batch: int) -> SubgraphProgram:
        """Choose for the whole batch, or select element by element of what both bodies give, as torch does."""
        parts = tuple(_batched_body(body, flags, batch) for body in self.bodies)
        kind = SelectedBody if flags[0] else ChosenBody
        return kind(parts, self.differentiable, self.draws)


@dataclass(frozen=True, slots=True, eq=False)
class SelectedBody(SubgraphProgram):
    """`cond` over batches of predicates: both bodies run, and each predicate selects; depth: how many batches."""

    depth: int = 1

    def always_batched(self, inputs: int) -> Sequence[int]:
        """Return the predicates."""
        del inputs
        return (0,)

    def run(self, bodies: Sequence[BodyCall], tensors: Tensors, numbers: Numbers) -> list[torch.Tensor]:
        """Run both bodies and select."""
        first, second = (
            call(*body.arguments(tensors, numbers)) for call, body in zip(bodies, self.bodies, strict=True)
        )
        batches = tensors[0].shape[: self.depth]
        predicate = tensors[0].to(torch.bool)
        return [
            torch.where(predicate.reshape(*batches, *(1,) * (one.dim() - self.depth)), one, other)
            for one, other in zip(first, second, strict=True)
        ]

    def batched(self, flags: tuple[bool, ...], batch: int) -> SubgraphProgram:
        """Select in one more batch."""
        parts = tuple(_batched_body(body, flags, batch) for body in self.bodies)
        return replace(self, bodies=parts, depth=self.depth + 1)


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedBody(SubgraphProgram):
    """`while_loop`: the first body is the condition, the second is run while it holds; carried: how many tensors."""

    carried: int = 0

    def run(self, bodies: Sequence[BodyCall], tensors: Tensors, numbers: Numbers) -> list[torch.Tensor]:
        """Run the loop; without a turn the results are copies."""
        now = list(tensors)
        turned = False
        while bodies[0](*self.bodies[0].arguments(now, numbers))[0]:
            now[: self.carried] = bodies[1](*self.bodies[1].arguments(now, numbers))
            turned = True
        results = now[: self.carried]
        return results if turned else [tensor.clone() for tensor in results]

    def looks(self, bodies: Sequence[BodyCall], tensors: Tensors, numbers: Numbers) -> list[torch.Tensor]:
        """Return what a turn gives: it is like what it is given."""
        return _fresh(bodies[1](*self.bodies[1].arguments(tensors, numbers)))


@dataclass(frozen=True, slots=True, eq=False)
class FoldedBody(SubgraphProgram):
    """`scan` and `map`: the body runs for each element of some tensors, along their first dimensions.

    carried: how many tensors it hands on, which come first; over: how many it goes along, which come next.
    """

    carried: int = 0
    over: int = 1
    backwards: bool = False

    def always_batched(self, inputs: int) -> Sequence[int]:
        """Return what is handed on: a turn gives a batch of it."""
        return range(self.carried)

    def input_dimension(self, place: int) -> int:
        """Return where a batch stands in an input: behind the elements."""
        return int(self.carried <= place < self.carried + self.over)

    def result_dimension(self, place: int) -> int:
        """Return where a batch stands in a result: behind the turns."""
        return int(place >= self.carried)

    def run(self, bodies: Sequence[BodyCall], tensors: Tensors, numbers: Numbers) -> list[torch.Tensor]:
        """Run the body for each element; what it gives beside what it hands on is stacked."""
        first, end = self.carried, self.carried + self.over
        length = tensors[first].shape[0]
        columns = [tensor.unbind() for tensor in tensors[first:end]]
        now = list(tensors)
        given: list[tuple[torch.Tensor, ...]] = [()] * length
        for place in reversed(range(length)) if self.backwards else range(length):
            now[first:end] = [column[place] for column in columns]
            results = tuple(bodies[0](*self.bodies[0].arguments(now, numbers)))
            now[:first], given[place] = results[:first], results[first:]
        return [*now[:first], *(torch.stack(column) for column in zip(*given, strict=True))]

    def looks(self, bodies: Sequence[BodyCall], tensors: Tensors, numbers: Numbers) -> list[torch.Tensor]:
        """Return what a turn gives, with the number of turns in front of what is stacked."""
        first, end = self.carried, self.carried + self.over
        now, length = list(tensors), tensors[first].shape[0]
        now[first:end] = [tensor.select(0, 0) for tensor in tensors[first:end]]
        results = list(bodies[0](*self.bodies[0].arguments(now, numbers)))
        stacked = [t.new_empty((length, *t.shape)) for t in results[first:]]
        return [*_fresh(results[:first]), *stacked]

    def batched(self, flags: tuple[bool, ...], batch: int) -> SubgraphProgram:
        """Run the body over the batch in each turn."""
        return replace(self, bodies=(_batched_body(self.bodies[0], flags, batch),))


@dataclass(frozen=True, slots=True, eq=False)
class GradientOfProgram(SubgraphProgram):
    """The gradients of another program, which runs again for them: one for each of the wanted tensors.

    inputs: how many tensors the program takes; behind them stand the gradients of its differentiable results.
    What the results do not depend on has a gradient of zeros, as in torch.
    """

    of: SubgraphProgram | None = None
    inputs: int = 0
    wanted: tuple[int, ...] = ()

    def always_batched(self, inputs: int) -> Sequence[int]:
        """Return the wanted tensors and the gradients: each element of a batch has gradients of its own."""
        assert self.of is not None
        return sorted({*self.of.always_batched(self.inputs), *self.wanted, *range(self.inputs, inputs)})

    def input_dimension(self, place: int) -> int:
        """Return where a batch stands in an input of the program, or in the gradient of a result."""
        assert self.of is not None
        if place < self.inputs:
            return self.of.input_dimension(place)
        flowing = [result for result, flows in enumerate(self.of.differentiable) if flows]
        return self.of.result_dimension(flowing[place - self.inputs])

    def result_dimension(self, place: int) -> int:
        """Return where a batch stands in a gradient: where it stands in the input."""
        return self.input_dimension(self.wanted[place])

    def run(self, bodies: Sequence[BodyCall], tensors: Tensors, numbers: Numbers) -> list[torch.Tensor]:
        """Run the program under autograd and go back."""
        assert self.of is not None
        again = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        if again:  # compiled bodies have one backward
            bodies = [interpreted(body.gm) for body in self.bodies]
        with torch.enable_grad():
            own = list(tensors[: self.inputs])
            for place in self.wanted:
                tensor = own[place]
                differentiated = again and tensor.requires_grad
                own[place] = tensor.view_as(tensor) if differentiated else tensor.detach().requires_grad_()
            results = self.of.run(bodies, own, numbers)
            flowing = [result for result, flows in zip(results, self.of.differentiable, strict=True) if flows]
            pairs = [pair for pair in zip(flowing, tensors[self.inputs :], strict=True) if pair[0].requires_grad]
            asked = [own[place] for place in self.wanted]
            if not pairs:
                return [torch.zeros_like(tensor) for tensor in asked]
            ends, gradients = zip(*pairs, strict=True)
            found = torch.autograd.grad(ends, asked, gradients, create_graph=again, allow_unused=True)
        return [_laid_out(gradient, tensor) for gradient, tensor in zip(found, asked, strict=True)]

    def looks(self, bodies: Sequence[BodyCall], tensors: Tensors, numbers: Numbers) -> list[torch.Tensor]:
        """Return tensors like the wanted ones."""
        return [torch.empty_like(tensors[place]) for place in self.wanted]

    def batched(self, flags: tuple[bool, ...], batch: int) -> SubgraphProgram:
        """Return the gradients of the program over a batch; the wanted tensors and gradients are all batched."""
        assert self.of is not None
        return replace(self, bodies=(inner := self.of.batched(flags[: self.inputs], batch)).bodies, of=inner)


def gradient_of(program: SubgraphProgram, inputs: int, wanted: tuple[int, ...]) -> GradientOfProgram:
    """Return the program that gives the gradients of another one."""
    flows = (True,) * len(wanted)
    return GradientOfProgram(program.bodies, flows, program.draws, program, inputs, wanted)


def _laid_out(gradient: torch.Tensor | None, like: torch.Tensor) -> torch.Tensor:
    if gradient is None:
        return torch.zeros_like(like)
    layout = torch.empty_like(like).stride()
    if gradient.stride() == layout:
        return gradient
    return torch.empty_strided(like.shape, layout, dtype=like.dtype, device=like.device).copy_(gradient)


class BatchedBody:
    """What runs at the only node of a body over a batch: the body under vmap."""

    def __init__(self, gm: fx.GraphModule, flags: tuple[bool, ...], batch: int) -> None:
        self.gm = gm
        self.dims = tuple(0 if flag else None for flag in flags)
        self.batch = batch
        self.__name__ = "batched_body"
        self.__module__ = __name__

    def __call__(self, *arguments: Any) -> Any:
        """Run the body for each element of the batch; without a batched argument the results are repeated."""
        results = torch.func.vmap(self.gm, in_dims=self.dims)(*arguments) if 0 in self.dims else None
        if results is None:
            results = tuple(tensor.expand(self.batch, *tensor.shape) for tensor in self.gm(*arguments))
        return tuple(tensor.contiguous() for tensor in results)


def _batched_body(body: Subgraph, flags: tuple[bool, ...], batch: int) -> Subgraph:
    mine = tuple(place >= 0 and flags[place] for place in body.reads)
    graph = fx.Graph()
    inputs = [graph.placeholder(node.name) for node in placeholders(body.gm.graph)]
    call = add_call(graph, BatchedBody(body.gm, mine, batch), inputs)
    count = len(outputs(body.gm.graph))
    add_output(graph, [add_call(graph, operator.getitem, (call, number)) for number in range(count)])
    return Subgraph(lazy_module({}, graph), body.reads)
