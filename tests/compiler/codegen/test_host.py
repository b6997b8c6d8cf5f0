"""When the inputs of a compiled graph fit, and what is told where they do not."""

from types import SimpleNamespace

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import plumbline
from plumbline.compiler.base.events import FellBack, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.host import write_host
from plumbline.compiler.codegen.host_call import HostProgram
from plumbline.compiler.graph.effects.shared_generator import watched_generator
from plumbline.compiler.graph.tracer import AtenRecorder, trace
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.native import compile_graph
from plumbline.compiler.schedule.execution_plan import plan_execution
from plumbline.compiler.schedule.schedule import schedule

aten = torch.ops.aten
GPU, CPU = torch.device("cuda:0"), torch.device("cpu")


def host_of_attention_backward(*, loop_reads_seed: bool) -> HostProgram:
    """Return the host of the gradients of an attention without dropout, on a GPU: its seed is promised there, too."""
    mode = FakeTensorMode()
    recorder = AtenRecorder(mode)
    with mode:
        query = torch.empty(2, 4, 16, 8, device=GPU)
        sums = torch.empty(2, 4, 32, device=GPU)
        seed = torch.empty((), dtype=torch.int64, device=GPU)
    for name, fake in (("query", query), ("sums", sums), ("seed", seed)):
        recorder.add_input(name, fake)
    with mode, watched_generator(), recorder, torch.no_grad():
        gradients = aten._scaled_dot_product_efficient_attention_backward.default(
            query, query, query, query, None, query, sums, seed, seed, 0.0, [True, True, True, False]
        )
        results = (gradients[0] * (seed if loop_reads_seed else 2),)
    return write_host(plan_execution(schedule(lower_graph(recorder.finish(results)), Options())))


def fits(host: HostProgram, device_of_query: torch.device, device_of_seed: torch.device) -> bool:
    inputs = []
    for (shape, strides, dtype), device in zip(
        host.layouts.values(), (device_of_query, GPU, device_of_seed), strict=True
    ):
        tensor = torch.empty_strided(shape, strides, dtype=dtype)
        shown = SimpleNamespace(shape=tensor.shape, stride=tensor.stride, dtype=dtype, device=device)
        inputs.append(SimpleNamespace(**vars(shown), is_neg=lambda: False))
    return bool(eval(host.fits, {"torch": torch, "device": GPU, **host.layouts})(*inputs))


def test_a_number_that_only_a_call_reads_may_lie_on_the_cpu() -> None:
    host = host_of_attention_backward(loop_reads_seed=False)
    assert fits(host, GPU, GPU)
    assert fits(host, GPU, CPU), "eager's attention gives its seed there"
    assert not fits(host, CPU, GPU)


def test_a_number_that_a_kernel_reads_has_to_be_where_the_kernel_is() -> None:
    host = host_of_attention_backward(loop_reads_seed=True)
    assert fits(host, GPU, GPU)
    assert not fits(host, GPU, CPU)


def test_a_call_that_goes_op_by_op_is_told() -> None:
    x = torch.randn(4, 6)
    call = compile_graph(trace(lambda x: x.exp() * 2, [x]), [x], Options(strict=True))
    with recording() as events:
        call(x)
    assert not any(isinstance(event, FellBack) for event in events)
    with recording() as events:
        (found,) = call(x.t())
    assert torch.equal(found, x.t().exp() * 2)
    (told,) = (event.why for event in events if isinstance(event, FellBack) and event.operation == "graph")
    assert told == "an input is laid out otherwise than the one it was compiled for"


def test_a_whole_program_never_goes_op_by_op_silently() -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    compiled = plumbline.compile(layer)
    with recording() as events:
        for _ in range(3):
            compiled(torch.randn(2, 5, 16, requires_grad=True)).sum().backward()
    assert [event.why for event in events if isinstance(event, FellBack) and event.operation == "graph"] == []
