"""Gradients that are differentiated again: the captured graph runs a second time, under autograd.

A compiled backward has no history. Where somebody asks for one (`create_graph=True`), as a gradient penalty does, the
graph as it was captured runs operator by operator on the inputs that it had, and autograd's own gradients of that are
what eager gives. Only what is joined to the results whose gradients are asked for runs. It needs the inputs of that as
they were. They are not kept alive for it, so it cannot be done where one is gone (what backward keeps is not) or has
changed, nor where these results read an input that the graph writes to, nor for graphs that put hooks on tensors. Draws
are repeated from where they began.
"""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from ...base.torch_facts import lazy_module
from ...graph.effects.call_effects import Drawn
from ...graph.effects.undo import HOOKED, GeneratorState, effects_of
from ...graph.fx_nodes import add_output, copy_node
from ...graph.graph_interpreter import interpret
from ...graph.node_values import outputs, placeholders
from ..call_signature import CallSignature, OutputKind
from ..joint_program import JointProgram


class InputReference(weakref.ref[torch.Tensor]):
    """What remembers an input without keeping it; of a class of its own, so that it is told from a program's own."""

    __slots__ = ()


Noted = tuple[InputReference, int]  # an input of a call, and how often it had been written to


@dataclass(frozen=True, slots=True)
class Differentiable:
    """What is known of a compiled form with gradients: the results that have one, and the tensors that it holds."""

    signature: CallSignature
    tangents: tuple[int, ...]
    constants: tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True)
class _PartOfGraph:
    """The calls joined to some results, which are its outputs.  read: whether each argument of the graph is used."""

    gm: fx.GraphModule
    read: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class CapturedAgain:
    """How to run a captured graph again.

    program: the graph, with the state of its calls.  arguments: of a call, without its tensors.  inputs: where these
    stand.  tangents: for each result with a gradient, which output of the graph it is.  unreached: inputs, by their
    number, that no gradient leads to.  constants: tensors that the graph holds.  draws: the generators it draws from.
    written: arguments that the graph writes to.
    """

    program: JointProgram
    arguments: tuple[object, ...]
    inputs: tuple[int, ...]
    constants: tuple[torch.Tensor, ...]
    tangents: tuple[int, ...]
    unreached: frozenset[int]
    draws: tuple[Drawn, ...] = ()
    written: tuple[int, ...] = ()
    parts: dict[tuple[bool, ...], _PartOfGraph] = field(default_factory=dict, compare=False)  # made when asked for

    def note(self, tensors: Sequence[object]) -> tuple[Noted, ...]:
        """Return what is remembered of a call's inputs; it does not keep them alive."""
        read = (value for value in (*tensors, *self.constants) if isinstance(value, torch.Tensor))
        return tuple((InputReference(value), value._version) for value in read)

    def inputs_of(self, noted: Sequence[Noted], pattern: tuple[bool, ...]) -> list[torch.Tensor | None] | None:
        """Return the inputs of a call, None for what is not read; None where one of the others is gone or changed.

        pattern: which results with a gradient have one.
        """
        read = self._part(pattern).read
        if any(read[place] for place in self.written):
            return None
        values: list[torch.Tensor | None] = []
        for number, (reference, version) in enumerate(noted):
            value = reference()
            if number >= len(self.inputs) or read[self.inputs[number]]:
                if value is None or value._version != version:
                    return None
                values.append(value)
            else:
                values.append(None)
        return values[: len(self.inputs)]

    def gradients(
        self,
        originals: Sequence[torch.Tensor | None],
        sizes: Sequence[float],
        tangents: Sequence[torch.Tensor | None],
        drawn: Sequence[GeneratorState] = (),
    ) -> tuple[torch.Tensor | None, ...]:
        """Return one gradient per input, with a history.

        originals: the inputs of the call, None for what these results do not read.  sizes: its dynamic sizes.
        tangents: one per result with a gradient, None where there is none.  drawn: the generators' states before it.
        """
        with torch.enable_grad():  # each has a step of its own: an input may be a view of another one
            tensors = [
                value.view_as(value) if value is not None and value.requires_grad else value for value in originals
            ]
        part = self._part(tuple(tangent is not None for tangent in tangents))
        with self.program.state(), _generators_at(drawn):
            ends: tuple[Any, ...] = interpret(part.gm, self._arguments_of(tensors, sizes))
        asked = [
            place
            for place, value in enumerate(tensors)
            if value is not None and value.requires_grad and place not in self.unreached
        ]
        found = torch.autograd.grad(
            ends,
            [value for place in asked if (value := tensors[place]) is not None],
            [tangent for tangent in tangents if tangent is not None],
            create_graph=True,
            allow_unused=True,
        )
        by_place = dict(zip(asked, found, strict=True))
        return tuple(by_place.get(place) for place in range(len(tensors)))

    def gradient_of_result(
        self,
        place: int,
        originals: Sequence[torch.Tensor | None],
        sizes: Sequence[float],
        tangents: Sequence[torch.Tensor | None],
        drawn: Sequence[GeneratorState] = (),
    ) -> torch.Tensor | None:
        """Return what arrives at a result from those behind it, None where nothing does.

        place: of the result, among those with a gradient.  tangents: of the others, as above.  originals: those of
        `inputs_of` for a pattern in which the result is, too.
        """
        pattern = tuple(tangent is not None or number == place for number, tangent in enumerate(tangents))
        with self.program.state(), torch.enable_grad(), _generators_at(drawn):
            values: tuple[Any, ...] = interpret(self._part(pattern).gm, self._arguments_of(originals, sizes))
        ends = dict(zip([number for number, there in enumerate(pattern) if there], values, strict=True))
        given = {number: tangent for number, tangent in enumerate(tangents) if tangent is not None}
        found: tuple[torch.Tensor | None, ...] = torch.autograd.grad(
            [ends[number] for number in given], [ends[place]], list(given.values()), allow_unused=True
        )
        return found[0]

    def _part(self, pattern: tuple[bool, ...]) -> _PartOfGraph:
        if pattern not in self.parts:
            ends = [place for place, there in zip(self.tangents, pattern, strict=True) if there]
            self.parts[pattern] = _part_of_graph(self.program.gm, ends, whole=bool(self.draws))
        return self.parts[pattern]

    def _arguments_of(self, tensors: Sequence[object], sizes: Sequence[float]) -> list[object]:
        """Return the arguments of a call."""
        arguments, dynamic = list(self.arguments), self.program.dynamic
        for position, value in zip(self.inputs, tensors, strict=True):
            arguments[position] = value
        known = dict(zip(dynamic.labels, sizes, strict=True))
        for position, label in dynamic.numbers.items():
            arguments[position] = known[label]
        return arguments


@contextmanager
def _generators_at(states: Sequence[GeneratorState]) -> Iterator[None]:
    """Let the generators go on from these states, and in the end from where they are now."""
    now = [(generator, generator.get_state()) for generator, _ in states]
    try:
        for generator, state in states:
            generator.set_state(state)
        yield
    finally:
        for generator, state in now:
            generator.set_state(state)


def _part_of_graph(gm: fx.GraphModule, ends: Sequence[int], *, whole: bool) -> _PartOfGraph:
    """Return all calls that are joined to these results by values made in the graph; whole: all calls there are."""
    results = outputs(gm.graph)
    pending = [*gm.graph.nodes] if whole else [node for place in ends if isinstance(node := results[place], fx.Node)]
    needed: set[fx.Node] = set()
    while pending:
        node = pending.pop()
        if node not in needed and node.op != "output":
            needed.add(node)
            pending.extend(node.all_input_nodes)
            if node.op != "placeholder":  # no input is written to; what is made here may be, by a call nobody reads
                pending.extend(node.users)
    needed.update(node for node in gm.graph.nodes if not node.all_input_nodes)  # grad mode, autocast
    graph = fx.Graph()
    new: dict[fx.Node, fx.Node] = {}
    for node in gm.graph.nodes:
        if node in needed and node.op != "output":
            new[node] = copy_node(graph, node, new.__getitem__)
    add_output(graph, [new[node] if isinstance(node := results[place], fx.Node) else node for place in ends])
    return _PartOfGraph(lazy_module(gm, graph), tuple(bool(node.users) for node in placeholders(graph)))


def captured_again(
    program: JointProgram, what: Differentiable, arguments: Sequence[object], unreached: frozenset[int]
) -> CapturedAgain | None:
    """Return how to run a graph again for its history; None where a second run is not what the first one was.

    what: of the graph's compiled form.  arguments: of a call that it is compiled for.
    """
    effects, signature, tangents = effects_of(program.gm), what.signature, what.tangents
    tensors = [place for place, value in enumerate(arguments) if isinstance(value, torch.Tensor)]
    alone = sorted(signature.inputs) == tensors and len({id(arguments[place]) for place in tensors}) == len(tensors)
    if effects is None or (effects.written and effects.draws) or program.gm.meta.get(HOOKED) or not alone:
        return None
    facts = {
        fact.index: place
        for place, fact in enumerate(signature.outputs)
        if fact.kind is OutputKind.RETURNED and not fact.steps
    }
    if not facts.keys() >= set(tangents):
        return None
    others = tuple(None if isinstance(value, torch.Tensor) else value for value in arguments)
    ends = tuple(facts[index] for index in tangents)
    held = program, others, signature.inputs, what.constants, ends, unreached
    return CapturedAgain(*held, effects.draws, effects.written)
