"""A compiled pair whose backward is a chain of steps: the engine hands on the gradients of one before the next runs.

The forward runs once. Then one `autograd.Function` per stage joins the history, the last stage of backward first; each
gives an empty token that the next one takes, and the first stage of backward gives the results. In backward a token's
gradient carries what the later stages read, so two passes over one history do not meet.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ...base.torch_facts import saved_one_by_one
from ..call_wrappers import run_plain, without_base
from ..function import (
    CompiledPair,
    complete_retained,
    demand_constants,
    gradients_with_history,
    laid_out_tangents,
    refuse_second,
)
from .backward_stages import BackwardStage

Sizes = tuple[float, ...]
Gradients = tuple[torch.Tensor | None, ...]


@dataclass(frozen=True, slots=True)
class CompiledStage:
    """call(kept values, tangents and handed values that `cut` names, sizes) -> gradients, then handed values.

    targets: the inputs, by number, whose gradients it gives, in order.  owns: the inputs whose history is behind it.
    """

    cut: BackwardStage
    call: Callable[..., Sequence[torch.Tensor]]
    targets: tuple[int, ...]
    owns: tuple[int, ...]


@dataclass(slots=True, eq=False)
class _Relay:
    """What a stage leaves to those after it in one backward pass.

    values: handed values by number.  whole: all gradients by input, where the first stage has computed them at once.
    """

    tangents: Sequence[torch.Tensor]
    values: dict[int, torch.Tensor] = field(default_factory=dict)
    whole: Gradients | None = None


@dataclass(slots=True, eq=False)
class _Forward:
    """What the steps of one call share while they are made. sources: where kept values are found, by kind."""

    sizes: Sizes
    count: int
    returned: list[torch.Tensor]
    kept: Sequence[torch.Tensor]


@dataclass(slots=True, eq=False)
class StagedPair(CompiledPair):
    """A compiled pair with a backward in stages; `backward_for` is asked only where not all of it is wanted."""

    stages: tuple[CompiledStage, ...] = ()
    chain: Callable[..., Any] = field(init=False)

    def __post_init__(self) -> None:
        """Make the chain."""
        CompiledPair.__post_init__(self)
        self.chain = _make_chain(self)

    def apply(self, sizes: Sizes, *tensors: Any) -> Any:
        """Run forward as a chain of steps of history."""
        return self.chain(sizes, *tensors)


def _make_chain(pair: StagedPair) -> Callable[..., Any]:
    first, *others = [_make_step(pair, number) for number in range(len(pair.stages))]

    def apply(sizes: Sizes, *tensors: torch.Tensor) -> Any:
        """Run the forward and put the steps behind its results."""
        call = _run_forward(pair, sizes, tensors)
        token: torch.Tensor | None = None
        for number in range(len(others), 0, -1):
            token = others[number - 1].apply(call, token, *(tensors[place] for place in pair.stages[number].owns))
        return first.apply(call, token, *(tensors[place] for place in pair.stages[0].owns))

    return apply


def _run_forward(pair: StagedPair, sizes: Sizes, tensors: tuple[torch.Tensor, ...]) -> _Forward:
    count = len(pair.signature.requires_grad)
    results = run_plain(pair.forward, (*tensors, *pair.constants, *sizes))
    given = {id(value) for value in tensors}
    returned = [value.detach() if id(value) in given else without_base(value) for value in results[:count]]
    sources = {"input": (*tensors, *pair.constants), "returned": returned, "extra": results[count:]}
    return _Forward(sizes, len(tensors), returned, [sources[kind][index] for kind, index in pair.kept])


def _make_step(pair: StagedPair, number: int) -> Any:
    """Return the Function of one stage."""
    stage = pair.stages[number]

    class BackwardStep(torch.autograd.Function):
        """Runs one stage of a compiled backward."""

        @staticmethod
        def forward(ctx: Any, call: _Forward, token: torch.Tensor | None, *owned: torch.Tensor) -> Any:
            """Keep what the stage reads; give the results, or a token for the stage before."""
            ctx.sizes, ctx.input_count, ctx.given = call.sizes, call.count, 2 + len(owned)
            ctx.later = None if token is None else token.grad_fn
            ctx.set_materialize_grads(False)
            results = {id(value) for value in call.returned}
            apart = number > 0 or len(pair.tangents) > 1  # a result that its own history saves would never be freed
            kept = [call.kept[place] for place in stage.cut.reads]
            kept = [value.detach() if apart and id(value) in results else value for value in kept]
            anchor = torch.empty(0, device="cpu")
            ctx.save_for_backward(*kept, anchor)
            if number > 0:
                return anchor
            needs = zip(call.returned, pair.signature.requires_grad, strict=True)
            ctx.mark_non_differentiable(*(value for value, need in needs if not need))
            return (*call.returned, anchor)

        @staticmethod
        def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
            """Run the stage, and hand on what later ones read."""
            if number == 0:
                demand_constants(pair)
                complete_retained(ctx, pair, gradients)
            relay = _first_relay(ctx, pair, gradients) if number == 0 else _relay_of(gradients[0])
            if relay is None:
                return (None,) * ctx.given
            found = relay.whole or _stage_gradients(ctx, stage, relay)
            handed = None if ctx.later is None else torch.empty(0, device="cpu")
            if handed is not None:
                handed._relay = relay  # type: ignore[attr-defined]  # tensors take attributes, and the engine keeps them
            return (None, handed, *(found[place] for place in stage.owns))

    return BackwardStep


def _relay_of(token: torch.Tensor | None) -> _Relay | None:
    relay: _Relay | None = getattr(token, "_relay", None)
    return relay


def _first_relay(ctx: Any, pair: StagedPair, gradients: Gradients) -> _Relay | None:
    """Return what the stages of one pass share: computed at once where results lack gradients or history is asked."""
    pattern = tuple(gradients[index] is not None for index in pair.tangents)
    if not any(pattern):
        return None
    if all(pattern) and not torch.is_grad_enabled():
        return _Relay(laid_out_tangents(pair, ctx.sizes, gradients))
    kept, anchor = _all_kept(ctx, pair, pattern)
    if torch.is_grad_enabled() and (again := gradients_with_history(ctx, pair, gradients)) is not None:
        return _Relay((), whole=again)
    backward = pair.backward_for(pattern, ctx.sizes)
    given = laid_out_tangents(pair, ctx.sizes, gradients)
    with torch.no_grad():
        results = run_plain(backward.call, (*(kept[place] for place in backward.reads), *given, *ctx.sizes))
    found: list[torch.Tensor | None] = [None] * ctx.input_count
    for target, value in zip(backward.targets, results, strict=True):
        found[target] = value
    history = refuse_second(anchor, gradients, tuple(found)) if torch.is_grad_enabled() else tuple(found)
    return _Relay((), whole=history)


def _all_kept(ctx: Any, pair: StagedPair, pattern: Sequence[bool]) -> tuple[dict[int, torch.Tensor], torch.Tensor]:
    """Return what all stages have kept, by place; raise eager's error where something needed was written to."""
    kept: dict[int, torch.Tensor] = {}
    anchor, failure, step = torch.empty(0), None, ctx
    for stage in pair.stages:
        try:
            *values, last = step.saved_tensors
            kept.update(zip(stage.cut.reads, values, strict=True))
            anchor = last if step is ctx else anchor
        except RuntimeError as error:
            if all(pattern):
                raise
            failure, places = str(error), dict(enumerate(stage.cut.reads))
            kept.update((places[n], value) for n, value in saved_one_by_one(step).items() if n in places)
        step = step.later
    if failure is not None and not kept.keys() >= set(pair.backward_for(tuple(pattern), ctx.sizes).reads):
        raise RuntimeError(failure)
    return kept, anchor


def _stage_gradients(ctx: Any, stage: CompiledStage, relay: _Relay) -> dict[int, torch.Tensor | None]:
    *kept, _ = ctx.saved_tensors  # when they were freed or written to, torch raises here
    cut = stage.cut
    given = (*kept, *(relay.tangents[place] for place in cut.tangents), *(relay.values[n] for n in cut.takes))
    results = run_plain(stage.call, (*given, *ctx.sizes))
    count = len(cut.gradients)
    relay.values.update(zip(cut.gives, results[count:], strict=True))
    for number in cut.ends:
        del relay.values[number]
    found: dict[int, torch.Tensor | None] = dict.fromkeys(stage.owns)
    found.update(zip(stage.targets, results[:count], strict=True))
    return found
