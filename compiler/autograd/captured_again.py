"""Gradients that are differentiated again: the captured graph runs a second time, under autograd.

A compiled backward has no history. Where somebody asks for one (`create_graph=True`), as a gradient penalty does, the
graph as it was captured runs operator by operator on the inputs that it had, and autograd's own gradients of that are
what eager gives. That needs the inputs as they were; they are not kept alive for it, so it cannot be done where one is
gone or has changed, nor for graphs that would do something twice: write, draw, or put hooks on tensors.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..graph.effects.undo import HOOKED, effects_of
from ..graph.graph_interpreter import interpret
from .call_signature import CallSignature, OutputKind
from .joint_program import JointProgram

Noted = tuple["weakref.ref[torch.Tensor]", int]  # an input of a call, and how often it had been written to


@dataclass(frozen=True, slots=True)
class Differentiable:
    """What is known of a compiled form with gradients: the results that have one, and the tensors that it holds."""

    signature: CallSignature
    tangents: tuple[int, ...]
    constants: tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True)
class CapturedAgain:
    """How to run a captured graph again.

    program: the graph, with the state of its calls.  arguments: of a call, without its tensors.  inputs: where these
    stand.  tangents: for each result with a gradient, which output of the graph it is.  unreached: inputs, by their
    number, that no gradient leads to.  constants: tensors that the graph holds.
    """

    program: JointProgram
    arguments: tuple[object, ...]
    inputs: tuple[int, ...]
    constants: tuple[torch.Tensor, ...]
    tangents: tuple[int, ...]
    unreached: frozenset[int]

    def note(self, tensors: Sequence[object]) -> tuple[Noted, ...]:
        """Return what is remembered of a call's inputs; it does not keep them alive."""
        read = (value for value in (*tensors, *self.constants) if isinstance(value, torch.Tensor))
        return tuple((weakref.ref(value), value._version) for value in read)

    def inputs_of(self, noted: Sequence[Noted]) -> list[torch.Tensor] | None:
        """Return the inputs of a call; None where one is gone, or anything that the graph reads was written to."""
        found = [(reference(), version) for reference, version in noted]
        values = [value for value, version in found if value is not None and value._version == version]
        return values[: len(self.inputs)] if len(values) == len(found) else None

    def gradients(
        self, originals: Sequence[torch.Tensor], sizes: Sequence[float], tangents: Sequence[torch.Tensor | None]
    ) -> tuple[torch.Tensor | None, ...]:
        """Return one gradient per input, with a history.

        originals: the inputs of the call.  sizes: its dynamic sizes.  tangents: one per result with a gradient, None
        where there is none.
        """
        with torch.enable_grad():  # each has a step of its own: an input may be a view of another one
            tensors = [value.view_as(value) if value.requires_grad else value for value in originals]
        with self.program.state():
            outputs = interpret(self.program.gm, self._arguments_of(tensors, sizes))
        ends: list[Any] = [outputs[place] for place in self.tangents]
        pairs = [(end, tangent) for end, tangent in zip(ends, tangents, strict=True) if tangent is not None]
        asked = [place for place, value in enumerate(tensors) if value.requires_grad and place not in self.unreached]
        found = torch.autograd.grad(
            [end for end, _ in pairs],
            [tensors[place] for place in asked],
            [tangent for _, tangent in pairs],
            create_graph=True,
            allow_unused=True,
        )
        by_place = dict(zip(asked, found, strict=True))
        return tuple(by_place.get(place) for place in range(len(tensors)))

    def _arguments_of(self, tensors: Sequence[object], sizes: Sequence[float]) -> list[object]:
        """Return the arguments of a call."""
        arguments, dynamic = list(self.arguments), self.program.dynamic
        for position, value in zip(self.inputs, tensors, strict=True):
            arguments[position] = value
        known = dict(zip(dynamic.labels, sizes, strict=True))
        for position, label in dynamic.numbers.items():
            arguments[position] = known[label]
        return arguments


def captured_again(
    program: JointProgram, what: Differentiable, arguments: Sequence[object], unreached: frozenset[int]
) -> CapturedAgain | None:
    """Return how to run a graph again for its history; None where a second run is not what the first one was.

    what: of the graph's compiled form.  arguments: of a call that it is compiled for.
    """
    effects, signature, tangents = effects_of(program.gm), what.signature, what.tangents
    tensors = [place for place, value in enumerate(arguments) if isinstance(value, torch.Tensor)]
    alone = sorted(signature.inputs) == tensors and len({id(arguments[place]) for place in tensors}) == len(tensors)
    if effects is None or effects.draws or effects.written or program.gm.meta.get(HOOKED) or not alone:
        return None
    facts = {
        fact.index: place
        for place, fact in enumerate(signature.outputs)
        if fact.kind is OutputKind.RETURNED and not fact.steps
    }
    if signature.writes or not facts.keys() >= set(tangents):
        return None
    others = tuple(None if isinstance(value, torch.Tensor) else value for value in arguments)
    ends = tuple(facts[index] for index in tangents)
    return CapturedAgain(program, others, signature.inputs, what.constants, ends, unreached)
