"""One traced program with dynamic sizes, run at every level of the backend for many sizes: eager's answer each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from plumbline.compiler.autograd.dynamic_arguments import Fits, TracedSizes
from plumbline.compiler.base.events import KernelBuilt, KernelLaunched, StepsAssigned, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.base.torch_facts import enable_python_dispatcher
from plumbline.compiler.dynamic_forms import condition, condition_text
from plumbline.compiler.graph.dynamic_sizes import with_size_inputs
from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.graph.tracer import AtenRecorder
from plumbline.compiler.kernel_levels import acceptance
from plumbline.compiler.loops.ir import LoopProgram
from plumbline.compiler.loops.loop_interpreter import interpret_program
from plumbline.compiler.loops.verify import verify
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.native import compile_graph
from plumbline.compiler.schedule.schedule import schedule
from plumbline.compiler.symbolic.symbolic_sizes import assumptions
from support.backend_levels import TRITON_LEVEL
from support.triton_account import fallbacks

Shape = tuple[int | str, ...]
STRICT = Options(strict=True, verify="run")


@dataclass(slots=True)
class DynamicProgram:
    """A function traced once for shapes in which some sizes are dynamic: names stand for them.

    builds: how many libraries were built so far.
    """

    function: Callable[..., object]
    shapes: tuple[Shape, ...]
    names: list[str]
    gm: torch.fx.GraphModule
    fits: Fits
    loops: list[tuple[Callable[..., object], LoopProgram, LoopProgram]] = field(default_factory=list)
    native: Callable[..., tuple[object, ...]] | None = None
    triton: Callable[..., tuple[object, ...]] | None = None
    builds: int = 0
    assigned: list[StepsAssigned] = field(default_factory=list)

    @staticmethod
    def traced(
        function: Callable[..., object],
        shapes: Sequence[Shape],
        hints: dict[str, int],
        dtype: torch.dtype = torch.float32,
    ) -> DynamicProgram:
        """Trace a function for sizes by name as they are at first."""
        sizes = TracedSizes.of(hints, frozenset())
        recorder = AtenRecorder(sizes.mode)
        fakes = []
        for number, shape in enumerate(shapes):
            with sizes.mode:
                fake = torch.empty([sizes.values[n] if isinstance(n, str) else n for n in shape], dtype=dtype)
            recorder.add_input(f"input_{number}", fake)
            fakes.append(fake)
        with enable_python_dispatcher(), sizes.mode, recorder, torch.no_grad():
            results = function(*fakes)
        gm = recorder.finish(results if isinstance(results, tuple) else (results,))
        fits = sizes.condition()
        assert fits is not None
        return DynamicProgram(function, tuple(shapes), list(hints), with_size_inputs(gm, sizes.symbols), fits)

    def inputs(self, sizes: dict[str, int], make: Callable[[tuple[int, ...]], torch.Tensor]) -> list[object]:
        """Return tensors of these sizes, then the sizes."""
        tensors = [make(tuple(sizes[n] if isinstance(n, str) else n for n in shape)) for shape in self.shapes]
        return [*tensors, *(sizes[name] for name in self.names)]

    def levels(self, given: Sequence[object]) -> dict[str, tuple[object, ...]]:
        """Return the outputs by level: the graph, lowered and fused loops interpreted, C, Triton interpreted."""
        sizes = given[len(self.shapes) :]
        lowered, fused = self._loops(sizes)
        results = {
            "graph": interpret(self.gm, given),
            "lowered": interpret_program(lowered, given),
            "fused": interpret_program(fused, given),
        }
        with recording() as events:
            if self.native is None:
                self.native = compile_graph(self.gm, (), STRICT, acceptance(STRICT))
            results["c"] = self.native(*given)
        if TRITON_LEVEL:
            results["triton"] = self._in_triton(given)
        self.builds += sum(isinstance(event, KernelBuilt) for event in events)
        return results

    def _in_triton(self, given: Sequence[object]) -> tuple[object, ...]:
        """Return what Triton's texts give; a part that ran otherwise is a failure."""
        with recording() as events:
            if self.triton is None:
                self.triton = compile_graph(self.gm, (), STRICT.replace(kernel_language="triton"))
            results = self.triton(*given)
        self.assigned += [event for event in events if isinstance(event, StepsAssigned)]
        launches = [event for event in events if isinstance(event, KernelLaunched)]
        faults = {form: list(fallbacks([form, *launches])) for form in self.assigned}
        assert any(not each for each in faults.values()), faults
        return results

    def _loops(self, sizes: Sequence[object]) -> tuple[LoopProgram, LoopProgram]:
        for fits, lowered, fused in self.loops:
            if fits(*sizes):
                return lowered, fused
        symbols = [node.meta["symbol"] for node in self.gm.graph.nodes if "symbol" in node.meta]
        with assumptions() as assumed:
            lowered = verify(lower_graph(self.gm, dict(zip(symbols, sizes, strict=True))), "lowering")
            fused = schedule(lowered, STRICT)
        self.loops.append((condition(symbols, condition_text(list(assumed))), lowered, fused))
        return lowered, fused
