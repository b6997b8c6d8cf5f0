"""Which language kernels are in, and a graph of CUDA tensors on a machine that has no GPU."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from plumbline.compiler.base.errors import Unsupported, UserError
from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.host import write_host
from plumbline.compiler.codegen.triton.launch_table import table_text, write_launch_table
from plumbline.compiler.codegen.triton.tiles import DeviceFacts
from plumbline.compiler.codegen.triton.triton_segments import language_of, triton_segments
from plumbline.compiler.graph.tracer import AtenRecorder
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.schedule.execution_plan import ExecutionPlan, plan_execution
from plumbline.compiler.schedule.schedule import schedule


def plan_of(device: str) -> ExecutionPlan:
    """Return the plan of a softmax and a product of fake tensors."""
    mode = FakeTensorMode()
    recorder = AtenRecorder(mode)
    with mode:
        x = torch.empty(8, 8, device=device)
    recorder.add_input("x", x)
    with mode, recorder, torch.no_grad():
        results = (x.softmax(-1).mm(x) + 1,)
    return plan_execution(schedule(lower_graph(recorder.finish(results)), Options()))


def test_the_device_chooses_the_language() -> None:
    assert language_of(plan_of("cpu"), Options()) == "c"
    assert language_of(plan_of("cpu"), Options(kernel_language="triton")) == "triton"
    with pytest.raises(UserError, match="no kernel language is named 'cuda'"):
        language_of(plan_of("cpu"), Options(kernel_language="cuda"))


def test_a_graph_of_cuda_tensors_has_kernels_and_a_host_on_its_device() -> None:
    plan = plan_of("cuda")
    assert plan.program.device == torch.device("cuda:0")
    assert len(plan.segments) == 2
    assert language_of(plan, Options(kernel_language="triton")) == "triton"
    for language in ("", "c"):  # what no GPU has run is asked for by name
        with pytest.raises(Unsupported, match="C kernels for tensors on cuda"):
            language_of(plan, Options(kernel_language=language))
    text = write_host(plan).text
    assert "device=device" in text
    assert "is_cpu" not in text
    listing = table_text(write_launch_table(plan, DeviceFacts()))
    assert "# segment 1" in listing
    assert listing.count("def kernel") == 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens where there is no GPU")
def test_without_a_gpu_the_reason_is_said() -> None:
    with pytest.raises(Unsupported, match="no GPU that torch can use"):
        triton_segments(plan_of("cuda"), Options())
