"""Planted faults whose culprit is known: where each is planted, the program that it breaks, and what has to be named.

A row names the kind of application that is guilty and a word of its sentence.  Programs are snippets in the middle of
random ones, which never use the operators of the faults, or real models.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it
from torch import fx

from plumbline.compiler import native
from plumbline.compiler.autograd import functionalize, partition
from plumbline.compiler.autograd.forms import traced_form
from plumbline.compiler.autograd.functionalize import Functionalizer
from plumbline.compiler.codegen import c_file, c_kernel
from plumbline.compiler.codegen.c_functions import c_library
from plumbline.compiler.frontend.guards import guard_rules, guard_table
from plumbline.compiler.frontend.guards.steps import GuardStep, StepOp
from plumbline.compiler.graph import passes, tracer
from plumbline.compiler.loops.body import ScalarBuilder, rebuild
from plumbline.compiler.loops.ir import Loop, LoopProgram, LoopStore
from plumbline.compiler.lowering.lower import lower_graph  # noqa: F401  registers all lowerings
from plumbline.compiler.lowering.registry import lowering_of, replace_lowering
from plumbline.compiler.schedule import execution_plan, schedule
from plumbline.compiler.schedule.memory_plan import MemoryPlan
from plumbline.compiler.values.guard import GuardKind

aten = torch.ops.aten
Plant = Callable[[], AbstractContextManager[object]]
Snippet = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class BisectPlant:
    """plant: the fault in force.  snippet: of h and w, both (8, 12), the same size out.  kind, word: what to name.

    calls: further calls, for faults that need a second one: functions of the arguments that change them.
    word: stands in the sentence.  size: of the tensors' first dimension.
    """

    name: str
    plant: Plant
    snippet: Snippet
    kind: str
    word: str
    size: int = 8
    gradients: bool = True
    again: Callable[[Any], Any] | None = None


def patched(owner: object, name: str, make: Callable[[Any], Any]) -> Plant:
    """Return what puts `make(original)` in the place of the original."""
    return lambda: mock.patch.object(owner, name, make(getattr(owner, name)))


# -- random programs around a snippet ----------------------------------------------------------------------------------

# One line each: of h and w; smooth, so that what a fault changes arrives at the end.
_STEPS: tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], ...] = (
    lambda h, w: h + w * 0.1,
    lambda h, w: h * 0.9 + 0.05,
    lambda h, w: h - w.mean() * 0.01,
    lambda h, w: torch.atan(h) + h * 0.5,
    lambda h, w: h + h.flip(0) * 0.05,
    lambda h, w: h + (h @ w.t()) @ w * 0.001,
    lambda h, w: h + h.sum(1, keepdim=True) * 0.01,
    lambda h, w: h.asinh() + h * 0.25,
    lambda h, w: h.t().contiguous().t() * 1.01,
)


def surrounded(snippet: Snippet, operators: int, seed: int) -> Callable[..., Any]:
    """Return a program of about so many operators with the snippet in its middle."""
    draw = random.Random(seed)
    steps = [draw.choice(_STEPS) for _ in range(max(0, operators // 3))]
    before, after = steps[: len(steps) // 2], steps[len(steps) // 2 :]

    def program(h: torch.Tensor, w: torch.Tensor, *more: Any) -> torch.Tensor:
        for step in before:
            h = step(h, w)
        h = snippet(h, w, *more)
        for step in after:
            h = step(h, w)
        return h

    return program


# -- the plants --------------------------------------------------------------------------------------------------------


def other_lowering(right: Any, wrong: Any) -> Plant:
    return lambda: replace_lowering(right, lowering_of(wrong))


def decomposed(operator: object, rule: Callable[..., object]) -> Plant:
    return patched(native, "extra_decompositions", lambda table: lambda: {**table(), operator: rule})


def canonical(changed: Callable[[Any, Any, Any], Any]) -> Plant:
    return patched(tracer, "_canonical", lambda original: lambda f, a, k: original(*changed(f, a, k)))


def graph_pass(name: str, change: Callable[[fx.GraphModule], None]) -> Plant:
    def make() -> AbstractContextManager[object]:
        original = passes.PASSES[name]

        def planted(gm: fx.GraphModule) -> fx.GraphModule:
            gm = original(gm)
            change(gm)
            return gm

        return passes.replace_pass(name, planted)

    return make


def bypasses(target: object, position: int = 0) -> Callable[[fx.GraphModule], None]:
    """Return a change that replaces calls of an operator by one of their arguments."""

    def change(gm: fx.GraphModule) -> None:
        for node in list(gm.graph.nodes):
            if node.target is target:
                node.replace_all_uses_with(node.args[position])
                gm.graph.erase_node(node)

    return change


def swaps_target(one: object, other: object) -> Callable[[fx.GraphModule], None]:
    def change(gm: fx.GraphModule) -> None:
        for node in gm.graph.nodes:
            if node.target is one:
                node.target = other

    return change


def merges(target: object) -> Callable[[fx.GraphModule], None]:
    """Return a change that merges calls of an operator on the same first argument, whatever the others are."""

    def change(gm: fx.GraphModule) -> None:
        seen: dict[object, fx.Node] = {}
        for node in list(gm.graph.nodes):
            if node.target is target and seen.setdefault(node.args[0], node) is not node:
                node.replace_all_uses_with(seen[node.args[0]])
                gm.graph.erase_node(node)

    return change


def loop_pass(name: str, change: Callable[[LoopProgram], LoopProgram]) -> Plant:
    original = next(each for each in schedule.PASSES if each.__name__ == name)
    return lambda: schedule.replace_pass(name, lambda program: change(original(program)))


def with_values(loop: Loop, change: Callable[[ScalarBuilder, Any], Any]) -> Loop:
    builder = ScalarBuilder()
    values = rebuild([store.value for store in loop.stores], builder, {})
    changed = [change(builder, value) if value.dtype.is_floating_point else value for value in values]
    stores = tuple(LoopStore(s.access, value, s.whole) for s, value in zip(loop.stores, changed, strict=True))
    return Loop(loop.name, loop.kept, loop.reduced, stores, loop.origins)


def doubled(loop: Loop) -> Loop:
    return with_values(loop, lambda builder, value: builder.op("add", value, value))


def negated(loop: Loop) -> Loop:
    return with_values(loop, lambda builder, value: builder.op("neg", value))


def loops_with(change: Callable[[Loop], Loop], where: Callable[[Loop], bool]) -> Callable[[LoopProgram], LoopProgram]:
    def changed(program: LoopProgram) -> LoopProgram:
        steps = tuple(change(s) if isinstance(s, Loop) and where(s) else s for s in program.steps)
        return replace(program, steps=steps)

    return changed


def uses(*names: str) -> Callable[[Loop], bool]:
    """Return whether a loop computes with all of some scalar operations."""
    return lambda loop: set(names) <= {scalar.name for scalar in loop.scalars()}


def wrong_merge(change: Callable[[Loop], Loop], where: Callable[[Loop, Loop], bool]) -> Plant:
    def make(merge: Any) -> Any:
        def planted(first: Loop, second: Loop, buffers: Any) -> Any:
            merged = merge(first, second, buffers)
            return change(merged) if isinstance(merged, Loop) and where(first, second) else merged

        return planted

    return patched(schedule, "merge", make)


def wrong_inlining(change: Callable[[Loop], Loop], where: Callable[[Loop], bool]) -> Plant:
    def make(inline: Any) -> Any:
        def planted(loop: Loop, free: Any) -> Loop:
            inlined = inline(loop, free)
            return change(inlined) if inlined.reads != loop.reads and where(inlined) else inlined

        return planted

    return patched(schedule, "_with_inlined", make)


def memory(change: Callable[[MemoryPlan, Sequence[Any]], MemoryPlan]) -> Plant:
    def make(plan_memory: Any) -> Any:
        return lambda lifetimes, *rest: change(plan_memory(lifetimes, *rest), lifetimes)

    return patched(execution_plan, "plan_memory", make)


def all_at_zero(plan: MemoryPlan, lifetimes: Sequence[Any]) -> MemoryPlan:
    return MemoryPlan(plan.arena_bytes, dict.fromkeys(plan.offsets, 0)) if len(lifetimes) > 1 else plan


def ends_a_step_early(plan_memory: Any) -> Any:
    def planted(lifetimes: Sequence[Any], *rest: Any) -> Any:
        return plan_memory([replace(each, last=max(each.first, each.last - 1)) for each in lifetimes], *rest)

    return planted


def starts_a_step_late(plan_memory: Any) -> Any:
    def planted(lifetimes: Sequence[Any], *rest: Any) -> Any:
        return plan_memory([replace(each, first=min(each.first + 1, each.last)) for each in lifetimes], *rest)

    return planted


def c_text(before: str, after: str, only: str = "") -> Plant:
    """C with one text in place of another, in kernels that hold the text `only`."""

    def make(write_kernel: Any) -> Any:
        def planted(*args: Any, **kwargs: Any) -> Any:
            text, order = write_kernel(*args, **kwargs)
            return (text.replace(before, after) if only in text else text), order

        return planted

    return patched(c_file, "write_kernel", make)


def vector_constants(function: Callable[[Any], Any]) -> Plant:
    def make(constant: Any) -> Any:
        def planted(self: Any, value: Any, register: str, lanes: int) -> str:
            return constant(self, function(value) if lanes > 1 else value, register, lanes)

        return planted

    return patched(c_library.Library, "constant", make)


def vector_text(before: str, after: str) -> Plant:
    """C text replaced in kernels with vectors only."""

    def make(function_text: Any) -> Any:
        def planted(text: Any, *rest: Any) -> str:
            written: str = function_text(text, *rest)
            return written.replace(before, after) if text.shape.vector is not None else written

        return planted

    return patched(c_kernel, "_function", make)


def shared_text(before: str, after: str) -> Plant:
    return patched(c_kernel, "range_text", lambda original: lambda *args: original(*args).replace(before, after))


def wrong_steps(kind: GuardKind) -> Plant:
    """The steps of a kind of guard accept everything; its Python check is right."""

    def make() -> AbstractContextManager[object]:
        rule = guard_table.RULE_OF_KIND[kind]
        accepts = lambda guard, slots: [GuardStep(StepOp.PYTHON, slots.value, operand=lambda *_: True, extra=())]  # noqa: E731  a rule of one line
        return mock.patch.dict(guard_table.RULE_OF_KIND, {kind: replace(rule, steps=accepts)})

    return make


def no_guards(kind: GuardKind) -> Plant:
    """Neither the steps nor the check of a kind of guard refuse anything."""

    def make() -> AbstractContextManager[object]:
        rule = guard_table.RULE_OF_KIND[kind]
        accepts = lambda guard, slots: [GuardStep(StepOp.PYTHON, slots.value, operand=lambda *_: True, extra=())]  # noqa: E731  a rule of one line
        wrong = replace(rule, steps=accepts, check=lambda guard, texts: "True")
        stack = ExitStack()
        stack.enter_context(mock.patch.dict(guard_table.RULE_OF_KIND, {kind: wrong}))
        stack.enter_context(mock.patch.dict(guard_rules.RULE_OF_KIND, {kind: wrong}))
        return stack

    return make


def again_in_backward(one: object, other: object) -> Plant:
    """What backward computes again, it computes with another operator."""

    def make(backward_graph: Any) -> Any:
        def planted(*args: Any) -> Any:
            graph = backward_graph(*args)
            for node in graph.graph.nodes:
                if node.target is one and not partition.in_backward(node):
                    node.target = other
            return graph

        return planted

    return patched(partition, "backward_graph", make)


def cut(change: Callable[[Any], Any]) -> Plant:
    return patched(traced_form, "partition", lambda original: lambda *a, **k: change(original(*a, **k)))


def first_value_twice(made: Any) -> Any:
    output = made.forward.graph.output_node()
    values = list(output.args[0])
    output.args = ((*values[:1], *values[:1], *values[2:]),) if len(values) > 1 else output.args
    return made


def backward_with(one: object, other: object) -> Callable[[Any], Any]:
    def change(made: Any) -> Any:
        swaps_target(one, other)(made.backward)
        return made

    return change


def host_text(before: str, after: str) -> Plant:
    def make(write_host: Any) -> Any:
        def planted(*args: Any, **how: Any) -> Any:
            host = write_host(*args, **how)
            return replace(host, text=host.text.replace(before, after))

        return planted

    return patched(native, "write_host", make)


# -- the table ---------------------------------------------------------------------------------------------------------


def _pointwise(operator: Callable[..., Any]) -> Snippet:
    return lambda h, w: h * 0.5 + operator(h + w * 0.3)


def _lowerings() -> Iterator[BisectPlant]:
    swaps: tuple[tuple[Any, Any, Snippet], ...] = (
        (aten.relu.default, aten.abs.default, _pointwise(torch.relu)),
        (aten.sigmoid.default, aten.tanh.default, _pointwise(torch.sigmoid)),
        (aten.sin.default, aten.cos.default, _pointwise(torch.sin)),
        (aten.exp.default, aten.expm1.default, _pointwise(lambda h: (h * 0.1).exp())),
        (aten.floor.default, aten.trunc.default, _pointwise(lambda h: (h * 3).floor())),
        (aten.maximum.default, aten.minimum.default, lambda h, w: torch.maximum(h, w)),
        (aten.rsqrt.default, aten.reciprocal.default, _pointwise(lambda h: (h * h + 1.5).rsqrt())),
        (aten.amax.default, aten.amin.default, lambda h, w: h - h.amax(1, keepdim=True)),
        (aten.erf.default, aten.tanh.default, _pointwise(torch.erf)),
        (aten.log1p.default, aten.log.default, _pointwise(lambda h: (h * h + 1).log1p())),
        (aten.gelu.default, aten.silu.default, _pointwise(F.gelu)),
        (aten.tril.default, aten.triu.default, _pointwise(torch.tril)),
        (aten.tanh_backward.default, aten.sigmoid_backward.default, _pointwise(torch.tanh)),
        (aten.sigmoid_backward.default, aten.tanh_backward.default, _pointwise(torch.sigmoid)),
    )
    for right, wrong, snippet in swaps:
        yield BisectPlant(f"lowering of {right}", other_lowering(right, wrong), snippet, "lowering", str(right))


def _decompositions() -> Iterator[BisectPlant]:
    rules: tuple[tuple[Any, Callable[..., object], Snippet], ...] = (
        (aten.hardshrink.default, lambda x, lambd=0.5: x * (x.abs() > 0.05), _pointwise(F.hardshrink)),
        (aten.hardshrink_backward.default, lambda g, x, lambd: g * (x > lambd), _pointwise(F.hardshrink)),
        (aten.celu.default, lambda x, alpha=1.0: x.clamp(min=-0.4), _pointwise(F.celu)),
        (aten.mish.default, lambda x: x * torch.sigmoid(x), _pointwise(F.mish)),
        (aten.softshrink.default, lambda x, lambd=0.5: x * 0.5, _pointwise(F.softshrink)),
        (aten.mse_loss.default, lambda x, y, reduction=1: (x - y).abs().mean(), lambda h, w: h + F.mse_loss(h, w)),
        (aten.softplus_backward.default, lambda g, x, beta, threshold: g, _pointwise(F.softplus)),
        (aten.huber_loss.default, lambda x, y, r=1, d=1.0: (x - y).mean(), lambda h, w: h + F.huber_loss(h, w)),
    )
    for operator, rule, snippet in rules:
        yield BisectPlant(
            f"decomposition of {operator}", decomposed(operator, rule), snippet, "decomposition", str(operator)
        )


def _stale(handle: Any) -> Any:
    return handle.region.value if handle.parent is None else handle.node


def _stages() -> Iterator[BisectPlant]:
    """Faults of the trace, of functionalisation and of the cut, which cannot be switched off: their stage is named."""

    def subtracts(func: Any, args: Any, kwargs: Any) -> Any:
        return (aten.add.Tensor if func is aten.rsub.Scalar else func), args, kwargs

    def forgets(func: Any, args: Any, kwargs: Any) -> Any:
        return func, args, ({} if func is aten.add.Tensor else kwargs)

    def rounds(func: Any, args: Any, kwargs: Any) -> Any:
        return (aten.ceil.default if func is aten.floor.default else func), args, kwargs

    yield BisectPlant(
        "trace, another operator", canonical(subtracts), _pointwise(lambda h: 1 - h), "autograd", "traced"
    )
    yield BisectPlant(
        "trace, a keyword", canonical(forgets), lambda h, w: torch.add(h, w, alpha=3), "autograd", "traced"
    )
    yield BisectPlant("trace, rounding", canonical(rounds), _pointwise(lambda h: (h * 3).floor()), "autograd", "traced")

    def in_place(h: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = h * w
        y.add_(1)
        return y.sin()

    def through_a_view(h: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = h * w
        row = y[0]
        y.mul_(2)
        return h + row.exp()

    twin = patched(
        functionalize,
        "twin_of",
        lambda of: lambda target: of(aten.sub_.Tensor if target is aten.add_.Tensor else target),
    )
    stale = patched(
        Functionalizer,
        "_read",
        lambda _: lambda self, handle: handle.region.value if handle.parent is None else handle.node,
    )
    yield BisectPlant("functionalise, another twin", twin, in_place, "autograd", "functionalised")
    yield BisectPlant("functionalise, a stale view", stale, through_a_view, "autograd", "functionalised")
    reverse = cut(lambda made: replace(made, kept=made.kept[::-1]))
    yield BisectPlant("partition, another order", reverse, lambda h, w: h.exp() * w.sin(), "autograd", "partition")
    yield BisectPlant(
        "partition, a value twice", cut(first_value_twice), lambda h, w: h.exp() * w.sin(), "autograd", "partition"
    )
    wrong = cut(backward_with(aten.cos.default, aten.sin.default))
    yield BisectPlant("partition, another backward", wrong, _pointwise(torch.sin), "autograd", "partition")
    for one, other, operator in (
        (aten.cosh.default, aten.sinh.default, lambda h: ((h * 0.1).cosh()).log()),
        (aten.sin.default, aten.cos.default, lambda h: h.sin().exp()),
    ):
        plant = again_in_backward(one, other)
        yield BisectPlant(f"partition, {one} again", plant, _pointwise(operator), "recompute", str(one))


def _passes() -> Iterator[BisectPlant]:
    powers = lambda h, w: h * 0.5 + (h * w) ** 2 + (h * w) ** 3  # noqa: E731  a rule of one line
    for name, change, snippet in (
        ("share_common_nodes", merges(aten.pow.Tensor_Scalar), powers),
        ("drop_identities", bypasses(aten.tanh.default), _pointwise(torch.tanh)),
        ("fold_scalar_constants", swaps_target(aten.sin.default, aten.cos.default), _pointwise(torch.sin)),
        ("drop_dead_nodes", bypasses(aten.sigmoid.default), _pointwise(torch.sigmoid)),
        (
            "share_common_nodes",
            swaps_target(aten.maximum.default, aten.minimum.default),
            lambda h, w: torch.maximum(h, w),
        ),
        ("drop_identities", bypasses(aten.relu.default), _pointwise(torch.relu)),
    ):
        yield BisectPlant(f"pass {name}, {change.__qualname__[:8]}", graph_pass(name, change), snippet, "pass", name)


def _schedule() -> Iterator[BisectPlant]:
    for name, change, snippet, where in (
        ("join_forward", doubled, _pointwise(torch.sin), uses("sin")),
        ("join_backward", negated, _pointwise(torch.sin), uses("sin")),
        ("inline_cheap", doubled, _pointwise(torch.erf), uses("erf")),
        ("inline_numbers", doubled, _pointwise(torch.tanh), uses("tanh")),
    ):
        yield BisectPlant(f"loop pass {name}", loop_pass(name, loops_with(change, where)), snippet, "loop-pass", name)

    def both(one: str, other: str) -> Callable[[Loop, Loop], bool]:
        return lambda first, second: uses(one)(first) and uses(other)(second)

    yield BisectPlant(
        "fusion of sin and exp",
        wrong_merge(doubled, both("sin", "exp")),
        lambda h, w: h + (h.sin().exp() + h.sin()),
        "fusion",
        "exp",
    )
    yield BisectPlant(
        "fusion of a reduction",
        wrong_merge(negated, lambda a, b: a.reduces and uses("exp")(b)),
        lambda h, w: h + (h - h.amax(1, keepdim=True)).exp(),
        "fusion",
        "exp",
    )
    yield BisectPlant(
        "fusion of erf and tanh",
        wrong_merge(negated, both("erf", "tanh")),
        lambda h, w: h + torch.erf(h).tanh(),
        "fusion",
        "tanh",
    )
    yield BisectPlant(
        "fusion of log and cos",
        wrong_merge(doubled, both("log", "cos")),
        lambda h, w: h + (h * h + 1).log().cos(),
        "fusion",
        "cos",
    )
    yield BisectPlant(
        "inlining into sin",
        wrong_inlining(doubled, uses("sin")),
        lambda h, w: h + ((h * w) - h).sin(),
        "inlining",
        "sin",
    )
    yield BisectPlant(
        "inlining into tanh",
        wrong_inlining(negated, uses("tanh")),
        lambda h, w: h + ((h * w) + h).tanh(),
        "inlining",
        "tanh",
    )
    yield BisectPlant(
        "inlining into erf",
        wrong_inlining(doubled, uses("erf")),
        lambda h, w: h + torch.erf(h * 0.3),
        "inlining",
        "erf",
    )


def chained_reductions(h: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Several intermediate tensors that live in one segment, each in a kernel of its own."""
    a = h.cos().flip(0)
    b = (a.t() + w.t().exp()).sum(1)
    c = (a.flip(1) * 2).sin().sum(0)
    d = (b.flip(0) + c).tanh()
    e = (a * d).sum(0).flip(0)
    return h + (d.flip(0) + e).exp() * 0.1 + a * 0.01


def _memory() -> Iterator[BisectPlant]:
    yield BisectPlant("memory, all in one place", memory(all_at_zero), chained_reductions, "reuse", "memory of")
    early = patched(execution_plan, "plan_memory", ends_a_step_early)
    yield BisectPlant("memory, given away early", early, chained_reductions, "reuse", "memory of")
    late = patched(execution_plan, "plan_memory", starts_a_step_late)
    yield BisectPlant("memory, taken late", late, chained_reductions, "reuse", "memory of")


def _code() -> Iterator[BisectPlant]:
    for operator, before, after in (
        (torch.sin, " + t", " - t"),
        (torch.erf, " + t", " - t"),
        (torch.acosh, " + t", " - t"),
        (torch.asin, " + t", " * t"),
    ):
        name = operator.__name__
        snippet = _pointwise(lambda h, operator=operator: operator(h * 0.1 + (2 if operator is torch.acosh else 0)))
        yield BisectPlant(
            f"C, {before} is {after} beside {name}", c_text(before, after, name), snippet, "kernel", "as C"
        )
    yield BisectPlant(
        "C, minus for plus",
        c_text(" + t", " - t", "sinh"),
        _pointwise(lambda h: (h * 0.1).sinh() + h),
        "kernel",
        "as C",
    )
    yield BisectPlant(
        "the host returns it negated",
        host_text("return (", "return (-"),
        _pointwise(torch.sin),
        "native",
        "generated code",
    )
    twice, more = (
        vector_constants(lambda v: v * 2 if v == 0.375 else v),
        vector_constants(lambda v: v + 1 if v == 0.625 else v),
    )
    yield BisectPlant("vector constants doubled", twice, lambda h, w: h * 0.375, "vector", "lanes", size=64)
    yield BisectPlant("vector constants and one", more, lambda h, w: h + (h * 0.625).sin(), "vector", "lanes", size=64)
    negative = vector_constants(lambda v: -v if v == 0.875 else v)
    yield BisectPlant("vector constants negated", negative, lambda h, w: (h * 0.875).tanh(), "vector", "lanes", size=64)
    yield BisectPlant(
        "threads skip their last share",
        shared_text("thread + 1) /", "thread) /"),
        lambda h, w: h * 0.5 + w.sin(),
        "threads",
        "threads",
        size=4096,
    )
    yield BisectPlant(
        "threads begin one step late",
        shared_text("* thread /", "* (thread + 1) /"),
        lambda h, w: (h * 0.5).cos(),
        "threads",
        "threads",
        size=4096,
    )


def _guards() -> Iterator[BisectPlant]:
    def scaled(h: torch.Tensor, w: torch.Tensor, more: Any) -> torch.Tensor:
        return h * 0.5 + w * more["scale"]

    def counted(h: torch.Tensor, w: torch.Tensor, more: Any) -> torch.Tensor:
        for _ in more["items"]:
            h = h + w * 0.1
        return h

    def typed(h: torch.Tensor, w: torch.Tensor, more: Any) -> torch.Tensor:
        return h + w if isinstance(more["items"], list) else h - w

    def chosen(h: torch.Tensor, w: torch.Tensor, more: Any) -> torch.Tensor:
        return more["function"](h) + w

    def again_with(**changes: Any) -> Callable[[Any], Any]:
        return lambda more: {**more, **changes}

    for kind, snippet, again in (
        (GuardKind.EQUALS, scaled, again_with(scale=3.0)),
        (GuardKind.LENGTH, counted, again_with(items=[1, 2, 3, 4])),
        (GuardKind.TYPE, typed, again_with(items=(1, 2))),
        (GuardKind.IDENTITY, chosen, again_with(function=torch.cos)),
    ):
        name = f"guards of kind {kind.name}"
        yield BisectPlant(f"{name}, in C", wrong_steps(kind), snippet, "guard", "checked in C", again=again)
        if kind in (GuardKind.EQUALS, GuardKind.LENGTH):
            yield BisectPlant(f"{name}, all", no_guards(kind), snippet, "capture", "captured program", again=again)


def first_more() -> dict[str, Any]:
    """Return the third argument of the programs about guards."""
    return {"scale": 2.0, "items": [1, 2], "function": torch.sin}


def plants() -> list[BisectPlant]:
    """Return all of them."""
    makers = (_lowerings, _decompositions, _stages, _passes, _schedule, _memory, _code, _guards)
    return [plant for make in makers for plant in make()]


def values(plant: BisectPlant) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the first two arguments of a plant's program."""
    generator = torch.Generator().manual_seed(1)
    h = torch.randn(plant.size, 12, generator=generator)
    return h, torch.randn(plant.size, 12, generator=generator).requires_grad_(plant.gradients)


def answer(plant: BisectPlant, program: Callable[..., Any]) -> list[Any]:
    """Return the outputs of one call, or of two, and the gradients."""
    h, w = values(plant)
    more: tuple[Any, ...] = (first_more(),) if plant.again is not None else ()
    outputs = [program(h, w, *more)]
    if plant.again is not None:
        outputs.append(program(h, w, plant.again(*more)))
    if outputs[0].requires_grad:
        sum((output * (1 + place)).sum() for place, output in enumerate(outputs)).backward()
    return [*(output.detach() for output in outputs), w.grad]


@contextmanager
def planted(plant: BisectPlant) -> Iterator[None]:
    """Keep the fault in force inside the block."""
    with plant.plant():
        yield


def differs(found: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Return whether answers are not those of eager."""
    try:
        torch.testing.assert_close(list(found), list(expected), rtol=1e-3, atol=1e-3)
    except AssertionError:
        return True
    return False


def is_wrong(run: Callable[[], Sequence[Any]], expected: Sequence[Any]) -> bool:
    """Return whether a compiled program raises, or gives something else than eager."""
    try:
        found = run()
    except Exception:
        return True
    return differs(found, expected)
