import pytest
import torch
from torch import fx

from plumbline.compiler.autograd.compile import compile_with_autograd
from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.graph_interpreter import run_op_by_op
from support.alike import differences, run
from support.tensor_programs import PROGRAMS
from support.torch_release import since_release

OPTIONS = Options(verify=True, strict=True)
NOT_TRACEABLE = {"item", "data_dependent_size"}
if not since_release("2.13"):
    NOT_TRACEABLE.add("quantile")  # it looks at the values of its quantiles
ROUNDS_OTHERWISE = () if since_release("2.13") else ("cumsum",)  # cumprod's derivative writes into real tensors


def as_graph(function, count):
    """A torch-level graph of one call: what the program does inside is seen only by tracing it."""
    graph = fx.Graph()
    inputs = [graph.placeholder(f"arg_{index}") for index in range(count)]
    graph.output(graph.call_function(function, tuple(inputs)))
    return fx.GraphModule({}, graph)


def compiled(program, inputs, **kwargs):
    gm = as_graph(program.function, len(inputs))
    return compile_with_autograd(gm, inputs, run_op_by_op, OPTIONS, **kwargs)


def check_fallback(name, call):
    program = PROGRAMS[name]
    if name in NOT_TRACEABLE:
        assert call.fallback_reason
    elif program.eager:
        assert program.eager in (call.fallback_reason or "")
    else:
        assert call.fallback_reason is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_training_is_eager(name):
    """Values, strides, aliases, mutations, generator and gradients, bit for bit, for three cotangents."""
    program = PROGRAMS[name]
    call = compiled(program, program.inputs(), recompute=False)
    check_fallback(name, call)
    for seed in range(3):
        mine = run(call, program.inputs(), cotangents=seed)
        eager = run(program.function, program.inputs(), cotangents=seed)
        problems = differences(mine, eager, rounding=2**-22 if program.order or name in ROUNDS_OTHERWISE else 0.0)
        assert problems == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_gradient_at_a_time_is_eager(name):
    """With a gradient for one output only, the others' are None, not zero; cheap values are computed again."""
    program = PROGRAMS[name]
    call = compiled(program, program.inputs(), recompute=True)
    for chosen in range(3):
        mine = run(call, program.inputs(), cotangents=0, chosen=chosen)
        eager = run(program.function, program.inputs(), cotangents=0, chosen=chosen)
        problems = differences(mine, eager, rounding=2**-22 if name in ROUNDS_OTHERWISE else 0.0)
        assert problems == []


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode], ids=["no_grad", "inference_mode"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_inference_is_eager(name, mode):
    program = PROGRAMS[name]
    with mode():
        call = compiled(program, program.inputs())
        problems = differences(run(call, program.inputs()), run(program.function, program.inputs()))
        assert problems == []
