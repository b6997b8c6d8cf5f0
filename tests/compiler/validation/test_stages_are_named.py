"""A fault in any stage costs time, not truth: validation names the stage, and the answer is eager's.

One row a fault: where it is planted, the program that it hits, and the stage that has to be named.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it
from torch import fx

import plumbline
from plumbline.compiler import native
from plumbline.compiler.autograd import functionalize
from plumbline.compiler.autograd.forms import backwards, traced_form
from plumbline.compiler.autograd.functionalize import Functionalizer
from plumbline.compiler.base.events import CompilerFailed, Validated, recording
from plumbline.compiler.codegen import c_segments
from plumbline.compiler.comparison.first_call import StageDeparture
from plumbline.compiler.graph import passes, tracer
from plumbline.compiler.loops.body import ScalarBuilder, rebuild
from plumbline.compiler.loops.ir import Loop, LoopProgram, LoopStore
from plumbline.compiler.lowering.registry import LoweringCall, replace_lowering
from plumbline.compiler.schedule import schedule

pytestmark = pytest.mark.cc
aten = torch.ops.aten
Original = Callable[..., object]
Plant = Callable[[], AbstractContextManager[object]]
Program = Callable[[torch.Tensor, torch.Tensor], object]


def patched(owner: object, name: str, make: Callable[[Original], Original]) -> Plant:
    """Return what puts `make(original)` in the place of the original."""
    return lambda: mock.patch.object(owner, name, make(getattr(owner, name)))


# -- the trace ---------------------------------------------------------------------------------------------------------


def adds_for_subtracts(canonical: Original) -> Original:
    def planted(func: object, args: object, kwargs: object) -> object:
        return canonical(aten.add.Tensor if func is aten.sub.Tensor else func, args, kwargs)

    return planted


def forgets_keywords(canonical: Original) -> Original:
    return lambda func, args, kwargs: canonical(func, args, {} if func is aten.add.Tensor else kwargs)


def writes_nothing_back(_original: Original) -> Original:
    return lambda target, value, tracked: None


# -- decompositions ----------------------------------------------------------------------------------------------------


def decomposed(operator: object, rule: Callable[..., object]) -> Plant:
    return patched(native, "extra_decompositions", lambda table: lambda: {**table(), operator: rule})


# -- functionalisation -------------------------------------------------------------------------------------------------


def subtracts_in_place_of_adds(twin_of: Original) -> Original:
    return lambda target: twin_of(aten.sub_.Tensor if target is aten.add_.Tensor else target)


def leaves_views_stale(_read: Original) -> Original:
    return lambda self, handle: handle.region.value if handle.parent is None else handle.node


# -- graph passes ------------------------------------------------------------------------------------------------------


def merges_any_powers(gm: fx.GraphModule) -> fx.GraphModule:
    seen: dict[object, fx.Node] = {}
    for node in list(gm.graph.nodes):
        if node.target is aten.pow.Tensor_Scalar and seen.setdefault(node.args[0], node) is not node:
            node.replace_all_uses_with(seen[node.args[0]])
            gm.graph.erase_node(node)
    return gm


def drops_factors(gm: fx.GraphModule) -> fx.GraphModule:
    for node in list(gm.graph.nodes):
        if node.target is aten.mul.Tensor and not isinstance(node.args[1], fx.Node):
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
    return gm


# -- the cut -----------------------------------------------------------------------------------------------------------


def keeps_in_another_order(partition: Original) -> Original:
    def planted(*args: object, **kwargs: object) -> object:
        cut = partition(*args, **kwargs)
        return replace(cut, kept=cut.kept[::-1])

    return planted


def returns_the_first_value_twice(partition: Original) -> Original:
    def planted(*args: object, **kwargs: object) -> object:
        cut = partition(*args, **kwargs)
        output = cut.forward.graph.output_node()
        values = list(output.args[0])
        output.args = ((values[0], values[0], *values[2:]),)
        return cut

    return planted


# -- loops -------------------------------------------------------------------------------------------------------------


def relu_with_a_threshold(call: LoweringCall) -> object:
    def element(builder: ScalarBuilder, x: object) -> object:
        half = builder.constant(0.5, x.dtype)
        return builder.op("where", builder.op("gt", x, half), x, builder.constant(0.0, x.dtype))

    return call.pointwise(element, "self")


def truncated_floor(call: LoweringCall) -> object:
    return call.pointwise(lambda builder, x: builder.op("trunc", x), "self")


def doubles(program: LoopProgram) -> LoopProgram:
    """Every floating-point value that a loop stores is doubled."""

    def changed(loop: Loop) -> Loop:
        builder = ScalarBuilder()
        values = rebuild([store.value for store in loop.stores], builder, {})
        twice = [builder.op("add", value, value) if value.dtype.is_floating_point else value for value in values]
        stores = tuple(LoopStore(s.access, value, s.whole) for s, value in zip(loop.stores, twice, strict=True))
        return Loop(loop.name, loop.kept, loop.reduced, stores, loop.origins)

    return replace(program, steps=tuple(changed(step) if isinstance(step, Loop) else step for step in program.steps))


def swaps_branches(program: LoopProgram) -> LoopProgram:
    """Steps that do not read each other change places; the outputs too."""
    return replace(program, outputs=program.outputs[::-1])


# -- C -----------------------------------------------------------------------------------------------------------------


def text_replaced(before: str, after: str, only: str = "") -> Callable[[Original], Original]:
    """C with one text in place of another, in files that hold the text `only`."""

    def make(write_file: Original) -> Original:
        def planted(*args: object, **kwargs: object) -> object:
            file = write_file(*args, **kwargs)
            assert before in file.text or only not in file.text
            return replace(file, text=file.text.replace(before, after)) if only in file.text else file

        return planted

    return make


def host_replaced(before: str, after: str) -> Callable[[Original], Original]:
    def make(write_host: Original) -> Original:
        def planted(*args: object, **how: object) -> object:
            host = write_host(*args, **how)
            assert before in host.text
            return replace(host, text=host.text.replace(before, after))

        return planted

    return make


def in_place(x: torch.Tensor, w: torch.Tensor) -> object:
    y = x * w
    y.add_(1)
    return y.sin()


def through_a_view(x: torch.Tensor, w: torch.Tensor) -> object:
    y = x * w
    row = y[0]
    y.mul_(2)
    return row.exp()


def to_an_input(x: torch.Tensor, w: torch.Tensor) -> object:
    x.mul_(2)
    return x.exp() * w


@dataclass(frozen=True, slots=True)
class Fault:
    """plant: the fault in force.  program: what it hits, of x and w, which requires grad.  stage: the one to name."""

    plant: Plant
    program: Program
    stage: str


def write_file(before: str, after: str, only: str = "") -> Plant:
    return patched(c_segments, "write_file", text_replaced(before, after, only))


def wrong_gelu(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    return x * torch.sigmoid(1.6 * x)


FAULTS = {
    "trace, another operator": Fault(
        patched(tracer, "_canonical", adds_for_subtracts), lambda x, w: (x - w).exp(), "traced graph"
    ),
    "trace, a keyword lost": Fault(
        patched(tracer, "_canonical", forgets_keywords), lambda x, w: torch.add(x, w, alpha=3), "traced graph"
    ),
    "decomposition, forward": Fault(
        decomposed(aten.hardshrink.default, lambda x, lambd=0.5: x * (x.abs() > 0.05)),
        lambda x, w: F.hardshrink(x * w),
        "decomposed graph",
    ),
    "decomposition, backward": Fault(
        decomposed(aten.hardshrink_backward.default, lambda grad, x, lambd: grad * (x > lambd)),
        lambda x, w: F.hardshrink(x * w),
        "decomposed graph",
    ),
    "decomposition, one draw more": Fault(
        decomposed(aten.hardshrink.default, lambda x, lambd=0.5: (aten.rand_like(x), x * (x.abs() > lambd))[1]),
        lambda x, w: F.hardshrink(x * w),
        "decomposed graph",
    ),
    "functionalisation, another twin": Fault(
        patched(functionalize, "twin_of", subtracts_in_place_of_adds), in_place, "functionalised graph"
    ),
    "functionalisation, a stale view": Fault(
        patched(Functionalizer, "_read", leaves_views_stale), through_a_view, "functionalised graph"
    ),
    "graph pass, different calls merged": Fault(
        lambda: passes.replace_pass("share_common_nodes", merges_any_powers),
        lambda x, w: (x * w) ** 2 + (x * w) ** 3,
        "graph passes: share_common_nodes",
    ),
    "graph pass, a factor dropped": Fault(
        lambda: passes.replace_pass("drop_identities", drops_factors),
        lambda x, w: (x * 3 * w).sum(),
        "graph passes: drop_identities",
    ),
    "partition, kept values change places": Fault(
        patched(traced_form, "partition", keeps_in_another_order), lambda x, w: x.exp() * w.sin(), "partition"
    ),
    "partition, a value of the forward": Fault(
        patched(traced_form, "partition", returns_the_first_value_twice),
        lambda x, w: (x * w, x + w),
        "partition",
    ),
    "lowering, forward": Fault(
        lambda: replace_lowering(aten.relu.default, relu_with_a_threshold),
        lambda x, w: (x * w).relu(),
        "lowering: aten.relu.default",
    ),
    "lowering, of a later operator": Fault(
        lambda: replace_lowering(aten.floor.default, truncated_floor),
        lambda x, w: (x.sin() * 3).floor() + w.exp(),
        "lowering: aten.floor.default",
    ),
    "schedule, values doubled": Fault(
        lambda: schedule.replace_pass("join_forward", doubles), lambda x, w: (x * w).exp(), "schedule: join_forward"
    ),
    "schedule, outputs change places": Fault(
        lambda: schedule.replace_pass("join_backward", swaps_branches),
        lambda x, w: (x * w, x + w),
        "schedule: join_backward",
    ),
    "C, another operation": Fault(write_file("(t0 * ", "(t0 + "), lambda x, w: x * w, "generated code"),
    "C, of the backward only": Fault(
        write_file(" * t", " + t", only="cos"), lambda x, w: (x + w).sin(), "generated code"
    ),
    "C, the Python around it": Fault(
        patched(native, "write_host", host_replaced("return (", "return (-")), lambda x, w: x * w, "generated code"
    ),
}


def values() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(4, 6, generator=generator), torch.randn(4, 6, generator=generator).requires_grad_()


def answer(program: Program) -> list[torch.Tensor | None]:
    """Return the outputs of a call, the gradient, the input afterwards and the next random number."""
    torch.manual_seed(7)
    x, w = values()
    result = program(x, w)
    outputs = list(result) if isinstance(result, tuple) else [result]
    ends = [value for value in outputs if value.requires_grad]
    sum((value * (1 + place)).sum() for place, value in enumerate(ends)).backward()
    return [*(value.detach() for value in outputs), w.grad, x, torch.rand(1)]


@pytest.mark.parametrize("name", FAULTS)
def test_the_stage_is_named_and_the_answer_is_eagers(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    with plumbline.config.patch(verify="run", bundle_directory=str(tmp_path), disk_cache=False):
        plumbline.reset()
        with fault.plant(), recording() as events:
            compiled = plumbline.compile(fault.program)
            first, second = answer(compiled), answer(compiled)
    expected = answer(fault.program)
    for found in (first, second):
        torch.testing.assert_close(found, expected)
    assert {event.departed for event in events if isinstance(event, Validated) and event.departed} == {fault.stage}
    failure, *others = (event for event in events if isinstance(event, CompilerFailed))
    assert {event.stage for event in (failure, *others)} == {fault.stage}
    assert "departs from" in failure.error
    files = {path.name for path in Path(failure.bundle).iterdir()}
    assert {"error.txt", "graph.py"} <= files


@pytest.mark.parametrize("name", FAULTS)
def test_nothing_departs_without_the_fault(name: str) -> None:
    plumbline.reset()
    with plumbline.config.patch(verify="run", strict=True), recording() as events:
        found = answer(plumbline.compile(FAULTS[name].program))
    torch.testing.assert_close(found, answer(FAULTS[name].program))
    assert [event.departed for event in events if isinstance(event, Validated)].count("") >= 2


def test_a_departure_raises_where_errors_of_ours_do() -> None:
    fault = FAULTS["lowering, forward"]
    plumbline.reset()
    message = r"lowering: aten\.relu\.default departs from lowering: aten\.mul\.Tensor: output 0"
    with plumbline.config.patch(verify="run", strict=True), fault.plant(), pytest.raises(StageDeparture, match=message):
        answer(plumbline.compile(fault.program))


def test_a_backward_for_some_of_the_results_is_compared_when_it_first_runs() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * w, w.sin(), (x + w).exp()

    plumbline.reset()
    with plumbline.config.patch(verify="run", strict=True), recording() as events:
        x, w = values()
        plumbline.compile(program)(x, w)[1].sum().backward()
    torch.testing.assert_close(w.grad, w.detach().cos())
    parts = [event.part for event in events if isinstance(event, Validated)]
    assert parts == ["captured graph", "ATen graph", "backward of some results", "ATen graph"]


def test_a_wrong_backward_for_some_of_the_results_gives_way_to_that_of_all() -> None:
    def wrong(backward_graph: Original) -> Original:
        def planted(joint: object, kept: object) -> object:
            graph = backward_graph(joint, kept)
            for node in graph.graph.nodes:
                if node.target is aten.cos.default:
                    node.target = aten.sin.default
            return graph

        return planted

    def program(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * w, w.sin()

    plumbline.reset()
    x, w = values()
    with plumbline.config.patch(verify="run"), patched(backwards, "backward_graph", wrong)():
        compiled = plumbline.compile(program)
        for count in (1, 2):
            compiled(x, w)[1].sum().backward()
            torch.testing.assert_close(w.grad, w.detach().cos() * count)
            assert x.grad is None
