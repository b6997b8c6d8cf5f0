"""What a captured graph does beside giving values: which inputs it writes, what it draws from, what can fail on data.

Noted from the ATen calls of the fake runs that capture makes anyway, in the order of the program, so that the answer
does not depend on the names of the functions that made them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import torch
from torch import fx

from ...base.torch_facts import OpOverload, WatchedFakeMode, decomposes_by_itself, storage_key
from ..facts import QUESTIONS, is_random, op_facts
from .data_failures import ever_fails_on_data, may_fail_on_data
from .kernel_refusals import demand_kernel, has_kernels_to_ask

Drawn = torch.device | torch.Generator  # a device stands for its default generator


@dataclass(frozen=True, slots=True)
class Effects:
    """Of one graph. Inputs are counted as the graph's placeholders.

    written: inputs whose memory, data or flags change. at_risk: those that change before the last call that may fail
    on data, so that a failure leaves them changed. histories: inputs that take a history by what is written to them.
    draws: the generators that it draws from.
    """

    written: tuple[int, ...] = ()
    at_risk: tuple[int, ...] = ()
    histories: tuple[int, ...] = ()
    draws: tuple[Drawn, ...] = ()
    may_fail: bool = True


@dataclass(frozen=True, slots=True)
class CallEffect:
    """What one call does: writes to inputs, draws, or may fail on data; storages: keys of all that it writes to."""

    writes: frozenset[fx.Node] = frozenset()
    draws: tuple[Drawn, ...] = ()
    may_fail: bool = False
    storages: frozenset[int] = field(default=frozenset(), compare=False)


@dataclass(slots=True, eq=False)
class EffectLog:
    """The events of one capture, in the order of the program."""

    events: list[CallEffect] = field(default_factory=list)
    inputs: dict[int, list[fx.Node]] = field(default_factory=dict)  # storage of fake inputs -> their placeholders
    fakes: list[tuple[fx.Node, torch.Tensor, object]] = field(default_factory=list)  # with the history it came with

    def note_input(self, fake: torch.Tensor, node: fx.Node) -> None:
        """Remember whose memory a storage stands for."""
        self.inputs.setdefault(storage_key(fake), []).append(node)
        self.fakes.append((node, fake, fake.grad_fn))

    def note(self, event: CallEffect) -> None:
        """Add one event, unless nothing happens."""
        if event.storages or event.writes or event.draws or event.may_fail:
            self.events.append(event)

    def watch(
        self,
        mode: WatchedFakeMode,
        operator: object,
        types: object,
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> object:
        """Run one call and note its effects; a composite one by its parts, where autograd has not taken it apart.

        Raises what eager raises for dtypes that an elementwise call has no kernel for.
        """
        if not isinstance(operator, OpOverload):  # flex_attention, cond: what they call is not seen, so they may fail
            self.note(CallEffect(may_fail=True))
            return mode.run(operator, types, args, kwargs)
        effects = operator_effects(operator)
        if effects.is_question:
            return mode.run(operator, types, args, kwargs)
        if effects.is_composite:
            with mode:
                result: object = operator.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if effects.has_kernels_to_ask:
            demand_kernel(operator, args, kwargs)
        result = mode.run(operator, types, args, kwargs)
        if not effects.is_silent:
            self.note(self._event(operator, effects, args, kwargs, result))
        return result

    def _event(
        self,
        operator: OpOverload,
        effects: "OperatorEffects",
        args: tuple[object, ...],
        kwargs: dict[str, object],
        result: object,
    ) -> CallEffect:
        arguments = (*args, *kwargs.values())
        written = frozenset(storage_key(tensor) for tensor in _written(effects, args, kwargs))
        draws = _generators(arguments, result) if effects.draws and _dropout(effects, args, kwargs) != 0.0 else ()
        writes = frozenset(node for storage in written for node in self.inputs.get(storage, ()))
        return CallEffect(writes, draws, may_fail_on_data(operator, arguments), written)

    def summary(self, placeholders: Sequence[fx.Node]) -> Effects:
        """Return what the graph with these placeholders does."""
        last = max((place for place, event in enumerate(self.events) if event.may_fail), default=-1)
        places = {node: position for position, node in enumerate(placeholders)}
        written = {places[node] for event in self.events for node in event.writes if node in places}
        at_risk = {places[node] for event in self.events[: last + 1] for node in event.writes if node in places}
        histories = {places[node] for node, fake, before in self.fakes if node in places and _has_other(fake, before)}
        draws = dict.fromkeys(drawn for event in self.events for drawn in event.draws)
        return Effects(
            tuple(sorted(written)), tuple(sorted(at_risk)), tuple(sorted(histories)), tuple(draws), last >= 0
        )


@dataclass(frozen=True, slots=True)
class OperatorEffects:
    """What the calls of one operator can do.

    is_composite: a composition of smaller calls.  has_kernels_to_ask: it is elementwise.  writes: arguments that it
    writes to, as (position, name).  draws: from a generator.  dropout: place and default of the probability of dropout.
    may_fail: on data, in some call.
    """

    is_question: bool
    is_composite: bool
    has_kernels_to_ask: bool
    writes: tuple[tuple[int, str], ...]
    draws: bool
    dropout: tuple[int, object] | None
    may_fail: bool

    @property
    def is_silent(self) -> bool:
        """Whether no call has an effect."""
        return not (self.writes or self.draws or self.may_fail)


@cache
def operator_effects(operator: OpOverload) -> OperatorEffects:
    """Return what the calls of an operator can do, read from its schema once."""
    arguments = operator._schema.arguments
    mutated = op_facts(operator).mutates or _UNDECLARED_WRITES.get(operator._schema.name, ())
    dropout = [(place, each.default_value) for place, each in enumerate(arguments) if each.name == "dropout_p"]
    return OperatorEffects(
        is_question=operator in QUESTIONS,
        is_composite=decomposes_by_itself(operator),
        has_kernels_to_ask=has_kernels_to_ask(operator),
        writes=tuple((place, arguments[place].name) for place in mutated),
        draws=is_random(operator),
        dropout=dropout[0] if dropout else None,
        may_fail=ever_fails_on_data(operator),
    )


_UNDECLARED_WRITES = {  # running statistics, which are written where `training` is set
    "aten::native_batch_norm": (3, 4),
    "aten::cudnn_batch_norm": (3, 4),
    "aten::miopen_batch_norm": (3, 4),
}


def _written(
    effects: OperatorEffects, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> Iterable[torch.Tensor]:
    """Yield the tensors that a call writes to."""
    for place, name in effects.writes:
        value = args[place] if place < len(args) else kwargs.get(name)
        for part in value if isinstance(value, list | tuple) else (value,):
            if isinstance(part, torch.Tensor):
                yield part


def _dropout(effects: OperatorEffects, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
    """Return the probability of dropout that a call of a fused operator takes; None if it takes none."""
    if effects.dropout is None:
        return None
    place, default = effects.dropout
    return args[place] if place < len(args) else kwargs.get("dropout_p", default)


def _generators(arguments: Iterable[object], result: object) -> tuple[Drawn, ...]:
    """Return what a call draws from."""
    own = [value for value in arguments if isinstance(value, torch.Generator)]
    if own:
        return tuple(own)
    parts = result if isinstance(result, list | tuple) else (result,)
    devices = [value.device for value in (*parts, *arguments) if isinstance(value, torch.Tensor)]
    return tuple(dict.fromkeys(devices)) or (torch.device("cpu"),)


def _has_other(fake: torch.Tensor, history: object) -> bool:
    """Return whether a tensor has another history than it had; of a view of a leaf that was written to, no one knows.

    torch then fails to make the view's history anew, with an assertion of its own.
    """
    try:
        return fake.grad_fn is not history
    except RuntimeError:
        return True
