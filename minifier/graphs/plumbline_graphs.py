"""Graphs of our own compiler: taken after capture or after autograd, and compiled one by one."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from plumbline.compiler.autograd.compile import compile_with_autograd
from plumbline.compiler.backends import resolve_backend
from plumbline.compiler.base.config import CONFIG
from plumbline.compiler.base.options import Options, options_from_environment
from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.kernel_levels import acceptance
from plumbline.compiler.native import compile_graph
from plumbline.compiler.pipeline import compile_callable, make_family
from plumbline.oracle.harness.captured_graphs import CallToCapture, CapturedGraph, cloned_inputs
from plumbline.oracle.harness.compilers import CompileRequest

from .planted_faults import planted_faults

GraphProgram = Callable[..., object]


class PlumblineGraphs:
    """Plumbline's graphs, for the minifier."""

    name = "plumbline"

    def capture(self, call: CallToCapture, after: str) -> list[CapturedGraph]:
        """Compile the target, let the call run it, and return the graphs in the order of their first run."""
        seen: list[CapturedGraph] = []
        options = options_of(call.request)

        def keep_part(part: fx.GraphModule, _inputs: Sequence[torch.Tensor]) -> Any:
            return _recorded(part, f"ATen graph {len(seen)}", seen)

        def keep(graph: fx.GraphModule, inputs: list[object]) -> GraphProgram:
            if after == "dynamo":
                return _recorded(graph, f"graph {len(seen)}", seen)
            return compile_with_autograd(graph, inputs, keep_part, options)

        family = make_family(keep, options, fullgraph=call.request.fullgraph, dynamic=call.request.dynamic)
        call.drive(compile_callable(call.target, family))
        return seen

    def compile(
        self, graph: fx.GraphModule, inputs: Sequence[object], backend: str, after: str, request: CompileRequest
    ) -> GraphProgram:
        """Compile one graph with a named backend; raises what the compiler raises, errors of its own too."""
        options = options_of(request).replace(strict=True)  # an error of ours is a failure, felt or not
        if backend == "triton":
            options = options.replace(kernel_language="triton")
        if after == "aot" and backend in ("inductor", "triton"):
            with torch.no_grad():
                return compile_graph(graph, inputs, options, acceptance(options))
        if after == "aot":
            return lambda *args: interpret(graph, args)
        run, _, _ = resolve_backend(backend, options)
        return run(graph, list(inputs))

    def settings(self) -> str:
        """Return the planted faults; everything else plumbline reads from its environment."""
        return planted_faults()


def options_of(request: CompileRequest) -> Options:
    """Return the compiler's options; stock's options do not apply."""
    del request
    return CONFIG.apply(options_from_environment())


def _recorded(graph: fx.GraphModule, label: str, seen: list[CapturedGraph]) -> GraphProgram:
    """Return a program that runs the graph as it is written, and keeps it with the inputs of its first run."""
    first_run: list[CapturedGraph] = []

    def run(*args: object) -> object:
        if not first_run:
            first_run.append(CapturedGraph(graph, cloned_inputs(args), label))
            seen.append(first_run[0])
        return interpret(graph, args)

    return run
