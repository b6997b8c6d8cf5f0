"""The torch.autograd.Function that ties a compiled forward to its compiled backward."""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from ..base.errors import Unsupported
from ..base.torch_facts import apply_function, keeps_graph, saved_one_by_one
from ..graph.effects.undo import generator_states
from ..graph.owned_inputs import Spend, spending
from .call_signature import CallSignature
from .call_wrappers import run_plain, without_base
from .histories.captured_again import CapturedAgain, InputReference
from .histories.history_reach import GradientPaths
from .histories.independent_results import ResultPart, parts_with, spent_with
from .histories.side_doors import left_at, open_doors, put_gates
from .tangent_layouts import Layout

Values = Sequence[torch.Tensor]
Pattern = tuple[bool, ...]
Sizes = tuple[float, ...]


@dataclass(slots=True, eq=False)
class CompiledPair:
    """What one Function needs.

    forward(*inputs, *constants, *dynamic sizes) -> returned values, then extra kept ones.  kept: where kept values are
    found (see partition).  tangents: which returned values have a gradient; layouts: sizes and strides that backward
    was traced with, in that order, given the dynamic sizes.  backward_for(pattern, sizes) -> (callable, its gradients'
    inputs); pattern: which tangents exist.  unreached: inputs that no gradient leads to.  parts: of the results, where
    backward may run for one after the other (see independent_results); none where it may not.  again: what gives
    gradients that have a history; None where nothing does.  order: in which the step of history gets the inputs; none
    for their own.  reads: constants of the program that backward was made with, each with `has_changed()`.
    """

    signature: CallSignature
    forward: Callable[..., Values]
    kept: tuple[tuple[str, int], ...]
    constants: tuple[torch.Tensor, ...]
    tangents: tuple[int, ...]
    layouts: Callable[[Sizes], tuple[Layout, ...]]
    backward_for: Callable[[Pattern, Sizes], "CompiledBackward"]
    paths: GradientPaths = field(default_factory=GradientPaths)
    parts: tuple[ResultPart, ...] = ()
    again: CapturedAgain | None = None
    order: tuple[int, ...] = ()
    reads: tuple[Any, ...] = ()
    whole: Callable[..., Any] = field(init=False)
    several: bool = field(init=False)

    def __post_init__(self) -> None:
        self.whole = make_function(self)
        self.several = sum(self.signature.requires_grad) > 1

    def __call__(self, tensors: Sequence[object], sizes: Sizes) -> Values:
        """Run forward so that autograd knows the backward."""
        if torch.is_grad_enabled():
            return self._run(tensors, sizes)
        with torch.enable_grad():  # the program itself switches grad mode on
            return self._run(tensors, sizes)

    def apply(self, sizes: Sizes, *tensors: Any) -> Any:
        """Run forward as one step of history."""
        return self.whole(sizes, *tensors)

    def _run(self, originals: Sequence[object], sizes: Sizes) -> Values:
        tensors, paths = [*originals], self.paths
        for place in paths.unreached:
            tensors[place] = _apart(tensors[place])
        doors = open_doors(paths, tensors) if paths.partial else ()
        drawn = generator_states(self.again.draws) if self.again and self.again.draws else ()
        found: Values = (self.whole if doors else self.apply)(sizes, *tensors)
        results, anchor = found[:-1], found[-1]
        context: Any = anchor.grad_fn
        if doors:
            context.doors = doors
            put_gates(doors, results, self.tangents, context, partial(_gradients, context, self))
        if self.several:
            for value, needs in zip(results, self.signature.requires_grad, strict=False):
                if needs and value.grad_fn is context and not value.is_complex():  # torch has none for complex numbers
                    # a step of its own: the engine visits it, and calls its hooks, if it has a gradient
                    torch.ops.aten.lift_fresh.default(value)
        context.noted, context.drawn = self.again.note(originals) if self.again else None, drawn
        context.inner = [self._seen(originals, results, one.tangent) for one in paths.inner]
        context.parts = [_part_of_history([results[self.tangents[n]] for n in part.tangents]) for part in self.parts]
        return results

    def _seen(self, originals: Sequence[object], results: Values, tangent: int) -> tuple[InputReference, int] | None:
        """Return what remembers the tensor that the program has of a result, and how many hooks it had before.

        Of a write it is what was written to; the hooks that this had are those of what it was.
        """
        index = self.tangents[tangent]
        write = index - self.signature.returned
        value = results[index] if write < 0 else originals[self.signature.writes[write].input]
        return (InputReference(value), len(value._backward_hooks or ())) if isinstance(value, torch.Tensor) else None


@dataclass(frozen=True, slots=True)
class CompiledBackward:
    """call(kept values in `reads`, existing tangents, dynamic sizes) -> gradients; targets: each one's input number.

    spend: does the same with a list of them, and frees each value behind its last use; None where nothing does.
    """

    call: Callable[..., Values]
    reads: tuple[int, ...]
    targets: tuple[int, ...]
    spend: Spend | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spend", spending(self.call))


def make_function(pair: CompiledPair) -> Callable[..., Any]:
    """Return `apply` of a Function of its own for one compiled pair."""

    class CompiledFunction(torch.autograd.Function):
        """Runs compiled code both ways; gradients that nobody asked for stay None."""

        @staticmethod
        def forward(ctx: Any, sizes: Sizes, *tensors: torch.Tensor) -> Any:
            """Run the forward and keep what backward reads."""
            return _forward(ctx, pair, sizes, tensors)

        @staticmethod
        def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
            """Run the backward that fits the gradients that exist; under create_graph one that has a history."""
            complete_retained(ctx, pair, gradients)
            ends = not keeps_graph()
            found = _gradients(ctx, pair, gradients, ends=ends)
            if ends:
                _forget(ctx)
            return (None, *(left_at(ctx.doors, found) if ctx.doors else found))

    apply: Callable[..., Any] = CompiledFunction.apply
    return apply if not pair.order else _in_order(pair, CompiledFunction)


def _forget(ctx: Any) -> None:
    """Forget the inputs once no backward can run any more: `swap_tensors` takes nothing that is weakly referenced."""
    if all(history.freed for ref in ctx.parts if (history := ref()) is not None):
        ctx.noted, ctx.inner = None, [None] * len(ctx.inner)


def _in_order(pair: CompiledPair, function: Any) -> Callable[..., Any]:
    """Return `apply` of a Function that takes the inputs in the pair's order, and hands gradients on in that order."""
    places = [pair.order.index(number) for number in range(len(pair.order))]

    class InOrder(function):  # type: ignore[misc]  # a class that is made here has no type of its own
        """Runs the same code; which gradient reaches its input first is another matter."""

        @staticmethod
        def forward(ctx: Any, sizes: Sizes, *tensors: torch.Tensor) -> Any:
            """Run the forward."""
            return function.forward(ctx, sizes, *(tensors[place] for place in places))

        @staticmethod
        def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
            """Run the backward."""
            _, *found = function.backward(ctx, *gradients)
            return (None, *(found[number] for number in pair.order))

    def apply(sizes: Sizes, *tensors: torch.Tensor) -> Any:
        return InOrder.apply(sizes, *(tensors[number] for number in pair.order))

    return apply


def _gradients(
    ctx: Any, pair: CompiledPair, gradients: tuple[torch.Tensor | None, ...], *, ends: bool
) -> tuple[torch.Tensor | None, ...]:
    """Return a gradient or None per input, from one per result; ends: nobody needs what was kept for these results."""
    pattern = tuple(gradients[index] is not None for index in pair.tangents)
    demand_constants(pair)
    kept, anchor = _kept(ctx, pair, pattern)
    if torch.is_grad_enabled():
        if (again := gradients_with_history(ctx, pair, gradients)) is not None:
            return again
        if anchor is None:  # nothing to hang a refusal on, and silence would lose a term
            raise _second_refused()
    frees = ends and not (pair.parts or torch.is_grad_enabled())
    with torch.no_grad():
        results = _backward(ctx, pair, kept.values, gradients, ends=frees)
    if pair.parts and ends:
        _keep_others(ctx, pair, kept, pattern)
    if not torch.is_grad_enabled():
        return results
    return refuse_second(anchor, (*gradients, *(door.token for door in ctx.doors)), results)


def _forward(ctx: Any, pair: CompiledPair, sizes: Sizes, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    count = len(pair.signature.requires_grad)
    results = run_plain(pair.forward, (*tensors, *pair.constants, *sizes))
    returned = [without_base(value) for value in results[:count]]
    sources = {"input": (*tensors, *pair.constants), "returned": returned, "extra": results[count:]}
    anchor = torch.empty(0, device="cpu")  # a result like the others: its history is that of all inputs
    if len(pair.tangents) > 1:  # what is no result of this step can be read without the others
        sources["returned"] = tuple(value.detach() for value in returned)
    ctx.save_for_backward(*(sources[kind][index] for kind, index in pair.kept), anchor)
    ctx.freed, ctx.parts, ctx.doors, ctx.inner = False, [], (), ()
    ctx.set_materialize_grads(False)
    plain = [value for value, need in zip(returned, pair.signature.requires_grad, strict=True) if not need]
    ctx.mark_non_differentiable(*plain)
    ctx.input_count, ctx.sizes = len(tensors), sizes
    return (*returned, anchor)


class _KeptValues(torch.autograd.Function):
    """A step of history that never runs: it holds tensors as autograd does, and knows when they were written to."""

    @staticmethod
    def forward(ctx: Any, seed: torch.Tensor, *tensors: torch.Tensor) -> torch.Tensor:
        """Save the tensors."""
        ctx.save_for_backward(*tensors)
        return seed.new_empty(0)


_SEED = torch.empty(0, device="cpu", requires_grad=True)  # autograd saves nothing where nothing requires a gradient


@dataclass(slots=True, eq=False, weakref_slot=True)
class _PartOfHistory:
    """What the context keeps for some results. It lives as long as these: their steps hold it, the context does not.

    holder: a result of the step that holds what their backward reads, once another backward has freed what the context
    saved; torch 2.11 ends a step with its results, whoever has it.
    places: what the holder holds, among the kept values.  missing: what torch says of others, that were written to.
    freed: a backward has run that ends theirs.
    """

    holder: Any = None
    places: tuple[int, ...] = ()
    missing: str | None = None
    freed: bool = False


@dataclass(frozen=True, slots=True)
class _Unpacked:
    """Kept values by place.  missing: what torch says of those that are not there."""

    values: dict[int, torch.Tensor]
    missing: str | None = None


def _part_of_history(results: Values) -> "weakref.ref[_PartOfHistory]":
    """Return what the context knows of some results; their steps hold it."""
    part = _PartOfHistory()
    for value in results:
        step: Any = value.grad_fn
        step.metadata[_PartOfHistory] = part
    return weakref.ref(part)


def _held(tensors: Values) -> Any:
    """Return a result whose step holds the tensors; without their histories, for it is part of that of results."""
    with torch.enable_grad():
        return apply_function(_KeptValues, _SEED, *(tensor.detach() for tensor in tensors))


def _held_by(history: _PartOfHistory) -> _Unpacked:
    """Return what a part of history holds, but for what was written to since."""
    step = history.holder.grad_fn
    try:
        return _Unpacked(dict(zip(history.places, step.saved_tensors, strict=True)), history.missing)
    except RuntimeError as error:
        there = saved_one_by_one(step)
        return _Unpacked({history.places[number]: tensor for number, tensor in there.items()}, str(error))


def _kept(ctx: Any, pair: CompiledPair, pattern: Pattern) -> tuple[_Unpacked, torch.Tensor | None]:
    """Return the kept values by place, and the anchor; raise eager's error where what is needed was freed."""
    kept = _Unpacked({})
    wanted = parts_with(pair.parts, pattern) if ctx.freed else ()
    histories = [ref() for part, ref in zip(pair.parts, ctx.parts, strict=True) if part in wanted]
    if not histories or torch.is_grad_enabled() or any(one is None or one.freed for one in histories):
        return _saved(ctx, pair, pattern)
    missing = None
    for history in histories:
        held = _held_by(history)
        kept.values.update(held.values)
        missing = missing or held.missing
    if missing is not None and not kept.values.keys() >= set(pair.backward_for(pattern, ctx.sizes).reads):
        raise RuntimeError(missing)
    return _Unpacked(kept.values, missing), None


def _saved(ctx: Any, pair: CompiledPair, pattern: Pattern) -> tuple[_Unpacked, torch.Tensor | None]:
    """Return what the context has saved; where something was written to since, what this backward reads is enough."""
    try:
        *values, anchor = ctx.saved_tensors  # when they were freed, torch raises here
    except RuntimeError as error:
        if all(pattern):
            raise
        message = str(error)
    else:
        return _Unpacked(dict(enumerate(values))), anchor
    kept = _Unpacked(saved_one_by_one(ctx), message)  # not in the block: what it raises has no other context
    if not kept.values.keys() >= set(pair.backward_for(pattern, ctx.sizes).reads):
        raise RuntimeError(message)
    return kept, None


def demand_constants(pair: CompiledPair) -> None:
    """Raise Unsupported where a constant that the backward was made with has been assigned since."""
    name = next((one.name for one in pair.reads if one.has_changed()), None)
    if name is not None:
        raise Unsupported(
            f"{name!r}, which the backward of an autograd function reads, has changed since the forward",
            why="a compiled graph has its backward made with the forward, from what it reads then",
            hint="give it to the function, which keeps it on its ctx, or apply the function outside of compiled code",
        )


def gradients_with_history(
    ctx: Any, pair: CompiledPair, gradients: Sequence[torch.Tensor | None]
) -> tuple[torch.Tensor | None, ...] | None:
    """Return gradients that can be differentiated, one per input, from a second run; None where there can be none.

    gradients: one per result of the graph.
    """
    if pair.again is None:
        return None
    tangents = [gradients[index] for index in pair.tangents]
    inputs = pair.again.inputs_of(ctx.noted, tuple(tangent is not None for tangent in tangents))
    return None if inputs is None else pair.again.gradients(inputs, ctx.sizes, tangents, ctx.drawn)


def complete_retained(ctx: Any, pair: CompiledPair, gradients: Sequence[torch.Tensor | None]) -> None:
    """Add to the gradients that results retain what arrives at them from later results of the graph.

    In eager it goes through them, here past them.  Raises for hooks, which it would have changed: they were called
    without it.  gradients: one per result of the graph.
    """
    tangents = [gradients[index] for index in pair.tangents]
    for inner, seen in zip(pair.paths.inner, ctx.inner, strict=True):
        value = seen[0]() if seen is not None else None
        if value is None or all(tangents[place] is None for place in inner.later):
            continue
        if len(value._backward_hooks or ()) > seen[1]:
            raise _inner_refused()
        if value.retains_grad:
            later = [tangent if place in inner.later else None for place, tangent in enumerate(tangents)]
            gradient = _arriving(ctx, pair, inner.tangent, later)
            if gradient is not None:
                value.grad = gradient if value.grad is None else value.grad + gradient


def _arriving(ctx: Any, pair: CompiledPair, place: int, later: Sequence[torch.Tensor | None]) -> torch.Tensor | None:
    """Return what later results give to one, by a second run of the graph; raises where there can be none.

    place: of the result among those with a gradient.  later: the tangents, one for each of these.
    """
    pattern = tuple(number == place or tangent is not None for number, tangent in enumerate(later))
    inputs = pair.again.inputs_of(ctx.noted, pattern) if pair.again is not None else None
    if pair.again is None or inputs is None or torch.is_grad_enabled():
        raise _inner_refused()
    return pair.again.gradient_of_result(place, inputs, ctx.sizes, later, ctx.drawn)


def _keep_others(ctx: Any, pair: CompiledPair, kept: _Unpacked, pattern: Pattern) -> None:
    """Hold what backward reads for other results: what the context has saved is freed when this backward ends."""
    ctx.freed, spent = True, spent_with(pair.parts, pattern)
    for part, ref in zip(pair.parts, ctx.parts, strict=True):
        history = ref()
        if history is None:
            continue
        if part in spent:
            history.freed, history.holder = True, None
        elif history.holder is None and not history.freed:
            history.places = tuple(place for place in part.kept if place in kept.values)
            history.holder, history.missing = _held([kept.values[place] for place in history.places]), kept.missing


def _apart(value: object) -> object:
    """Return an input without its history: the engine would visit that, and call hooks there, without a gradient."""
    return value.detach() if isinstance(value, torch.Tensor) and value.requires_grad else value


def _second_refused() -> Unsupported:
    """Return the error for gradients of gradients that the compiled form cannot give."""
    return Unsupported(
        "a gradient of a compiled graph's gradient is asked for",
        why="its backward is once_differentiable: it was compiled for one pass, and the graph cannot run again "
        "where it writes or draws, or an input is gone or has changed",
        hint="keep its inputs as they are, or run this part uncompiled, for instance under plumbline.disable",
    )


def _inner_refused() -> Unsupported:
    """Return the error for a result with hooks, or a gradient to retain, that the compiled form cannot serve."""
    return Unsupported(
        "a result of a compiled graph has hooks or retains its gradient, and another result was computed from it",
        why="a compiled graph is one step of history: what the later result gives does not arrive at the earlier one",
        hint="register the hook, or call retain_grad, inside of the compiled code, or compile with backend 'eager'",
    )


class _SecondBackward(torch.autograd.Function):
    """Hands gradients on and raises when somebody differentiates them: silence would lose a term."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the first `count` tensors, which are gradients; the others are what they depend on."""
        del ctx
        return tuple(gradient.view_as(gradient) for gradient in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """Raise."""
        del ctx, gradients
        raise _second_refused()


def refuse_second(
    anchor: torch.Tensor | None, tangents: tuple[torch.Tensor | None, ...], found: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return gradients that depend on all inputs and tangents: the engine walks only towards what is asked for.

    Without the way there, `torch.autograd.grad(..., allow_unused=True)` would say that there is no dependence.
    """
    present = [index for index, value in enumerate(found) if value is not None]
    sources = [value for value in (anchor, *tangents) if value is not None]
    handed = apply_function(_SecondBackward, len(present), *(found[index] for index in present), *sources)
    results = list(found)
    for index, value in zip(present, handed, strict=True):
        results[index] = value
    return tuple(results)


def _backward(
    ctx: Any,
    pair: CompiledPair,
    kept: dict[int, torch.Tensor],
    gradients: tuple[torch.Tensor | None, ...],
    *,
    ends: bool,
) -> tuple[Any, ...]:
    """Return a gradient or None per input; ends: nobody needs the kept values any more, whoever holds them."""
    pattern = tuple(gradients[index] is not None for index in pair.tangents)
    gradients_by_input: list[torch.Tensor | None] = [None] * ctx.input_count
    if not any(pattern):
        return tuple(gradients_by_input)
    backward = pair.backward_for(pattern, ctx.sizes)
    tangents = laid_out_tangents(pair, ctx.sizes, gradients)
    given = [*(kept[index] for index in backward.reads), *tangents, *ctx.sizes]
    if ends and backward.spend is not None:
        kept.clear()
        tangents.clear()
        ctx.maybe_clear_saved_tensors()
        results = run_plain(backward.spend, (given,))
    else:
        results = run_plain(backward.call, given)
    for target, value in zip(backward.targets, results, strict=True):
        gradients_by_input[target] = value
    return tuple(gradients_by_input)


def laid_out_tangents(pair: CompiledPair, sizes: Sizes, gradients: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
    """Return the gradients of results that exist, as backward was compiled for them; gradients: one per result."""
    return [
        _laid_out(gradient, *layout)
        for index, layout in zip(pair.tangents, pair.layouts(sizes), strict=True)
        if (gradient := gradients[index]) is not None
    ]


def _laid_out(gradient: torch.Tensor, size: tuple[int, ...], stride: tuple[int, ...]) -> torch.Tensor:
    """Return the gradient with the strides that backward was compiled for."""
    if gradient.stride() == stride:
        return gradient
    return torch.empty_strided(size, stride, dtype=gradient.dtype, device=gradient.device).copy_(gradient)
