"""What speaks against recording a graph as a CUDA graph is found on its plan, without a GPU, and is on record."""

from collections.abc import Callable

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from plumbline.compiler.base.events import FellBack, GraphRecorded, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.triton.graph_recording import reasons_against
from plumbline.compiler.graph.effects.shared_generator import watched_generator
from plumbline.compiler.graph.tracer import AtenRecorder, trace
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.native import compile_graph
from plumbline.compiler.runtime.triton_interpreter import why_unavailable
from plumbline.compiler.schedule.execution_plan import plan_execution
from plumbline.compiler.schedule.schedule import schedule
from support.dynamic_levels import DynamicProgram

Function = Callable[..., object]


def reasons(function: Function, *devices: str) -> tuple[str, ...]:
    """Return what speaks against recording a function of square matrices, each on a device."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    recorder = AtenRecorder(mode)
    with mode:
        inputs = [torch.empty(8, 8, device=device) for device in devices]
    for number, each in enumerate(inputs):
        recorder.add_input(f"input_{number}", each)
    with watched_generator(), mode, recorder, torch.no_grad():
        results = function(*inputs)
    gm = recorder.finish(results if isinstance(results, tuple) else (results,))
    plan = plan_execution(schedule(lower_graph(gm, scans=True), Options()))
    return reasons_against(plan, gm)


FREE: dict[str, Function] = {
    "kernels": lambda x: x.softmax(-1) * 2,
    "kernels and products": lambda x: x.relu().mm(x).sum(0),
    "a view of a result of its own": lambda x: x.mm(x).view(4, 16),
}


@pytest.mark.parametrize("name", FREE)
def test_nothing_speaks_against_kernels_and_products(name: str) -> None:
    assert reasons(FREE[name], "cuda") == ()


AGAINST: dict[str, tuple[Function, str]] = {
    "draws": (lambda x: torch.bernoulli(x) + 1, "aten.bernoulli.default: each call draws other numbers"),
    "writes to an input": (lambda x: (x.add_(1), x * 2)[1], "aten.add_.Tensor: it writes to an argument"),
    "factorisations": (lambda x: torch.linalg.inv(x), "its library may wait for the device"),
    "an input as a result": (lambda x: (x * 2, x), "result input_0 is memory of input_0"),
    "a view of an input": (lambda x: (x * 2, x.t()), "is memory of input_0, and would be a copy"),
    "results that share memory": (lambda x: (y := x.mm(x), y.t()), "share memory, and would be two copies"),
}


@pytest.mark.parametrize("name", AGAINST)
def test_what_speaks_against_it_is_said(name: str) -> None:
    function, words = AGAINST[name]
    found = reasons(function, "cuda")
    assert any(words in reason for reason in found), found


@pytest.mark.parametrize("probability", [0.0, 0.5])
def test_attention_draws_only_where_it_drops(probability: float) -> None:
    x = torch.randn(1, 2, 4, 8)
    gm = trace(lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=probability), (x,))
    found = reasons_against(plan_execution(schedule(lower_graph(gm), Options())), gm)
    assert (len(found) == 1) is (probability == 0), found
    assert "its tensors are on cpu" in found


def test_inputs_on_the_cpu_speak_against_it() -> None:
    (reason,) = reasons(lambda x, y: x * 2, "cuda", "cpu")
    assert reason == "input input_1 is on cpu"
    assert "its tensors are on cpu" in reasons(lambda x: x * 2, "cpu")


def test_sizes_that_change_speak_against_it() -> None:
    program = DynamicProgram.traced(lambda x: x * 2, (("n", 3),), {"n": 5})
    symbols = [node.meta["symbol"] for node in program.gm.graph.nodes if "symbol" in node.meta]
    plan = plan_execution(schedule(lower_graph(program.gm, dict.fromkeys(symbols, 5)), Options()))
    found = reasons_against(plan, program.gm)
    assert any(reason.startswith("its sizes change from call to call") for reason in found)


@pytest.mark.skipif(bool(why_unavailable()), reason=f"kernels cannot be interpreted: {why_unavailable()}")
def test_a_graph_that_is_not_recorded_runs_all_the_same_and_says_why() -> None:
    x = torch.randn(5, 7)
    gm = trace(lambda x: x.softmax(-1), (x,))
    options = Options(strict=True, kernel_language="triton", cuda_graphs=True)
    with recording() as events:
        compiled = compile_graph(gm, (x,), options)
        results = [compiled(x)[0] for _ in range(4)]
    told = [event.why for event in events if isinstance(event, FellBack) and event.operation == "cuda graph"]
    assert told == ["its tensors are on cpu"]
    assert not [event for event in events if isinstance(event, GraphRecorded)]
    for result in results:
        torch.testing.assert_close(result, x.softmax(-1))
