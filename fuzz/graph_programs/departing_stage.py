"""The stage of our compiler that first departs from the one before, for a batch that fails.

The backends say no more than capture, autograd or code.  Here each graph of the batch is run at every level of the
compiler, on the inputs it gets, call after call, until one departs.
"""

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import fx

from plumbline.compiler.base.config import CONFIG
from plumbline.compiler.base.options import Options, options_from_environment
from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.pipeline import compile_callable, make_family
from plumbline.compiler.validation.levels import first_departure
from plumbline.oracle.harness.captured_graphs import cloned_inputs
from plumbline.oracle.harness.compilers import TRITON

from ..generated_source import forget_sources, functions_of
from .graph_program import ProgramBatch
from .quick_comparison import gradients_of, run_call


def departing_stage(batch: ProgramBatch, backend: str = "inductor") -> str:
    """Return which stage departs and how, with the operators of the graph; empty where each does as the one before.

    backend: under which the batch fails: with `triton` the generated code is in Triton.
    Empty too for a fault of capture: the levels begin with the captured graph.  Never raises what a level raises.
    """
    found: list[str] = []
    options = CONFIG.apply(options_from_environment())
    if backend == TRITON:
        options = options.replace(kernel_language="triton")

    def keep(graph: fx.GraphModule, inputs: Sequence[object]) -> Callable[..., object]:
        del inputs  # those of each run are looked at: a fault may need a second call

        def run(*args: object) -> object:
            if not found:
                text = _departure(graph, cloned_inputs(args), options)
                found.extend([text] if text else [])
            return interpret(graph, args)

        return run

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        namespace = functions_of(batch.source())
        compiled = compile_callable(
            namespace["step"], make_family(keep, CONFIG.over_environment(), fullgraph=False, dynamic=None)
        )
        for call in range(batch.calls):
            groups = [namespace[f"arguments_{number}_{call}"]() for number in range(len(batch.programs))]
            gradients_of(run_call(compiled, tuple(one for group in groups for one in group), call), call)
        forget_sources()
    return found[0] if found else ""


def _departure(graph: fx.GraphModule, inputs: Sequence[object], options: Options) -> str | None:
    state = torch.random.get_rng_state()
    try:
        departure = first_departure(graph, inputs, options)
    except Exception as error:
        return f"a stage cannot be made: {type(error).__name__}: {error}"[:300]
    finally:
        torch.random.set_rng_state(state)
    if departure is None:
        return None
    operators = dict.fromkeys(str(node.target) for node in graph.graph.nodes if node.op.startswith("call_"))
    names = ", ".join(_short(name) for name in operators)
    return f"{departure.stage}, after {departure.before}: {departure.text} (graph of {names})"[:300]


def _short(name: str) -> str:
    """Return a target without the address that its text may hold."""
    return name.split(" at 0x")[0].removeprefix("<").removesuffix(">").removeprefix("built-in method ")
