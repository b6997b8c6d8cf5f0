"""compile_graph: a functional ATen graph becomes one callable that runs generated C.

The way down is a list: lower, schedule, write, build, load.  Whatever cannot be compiled runs op by op through ATen
with the reason recorded, so every graph has a right answer.
"""

from __future__ import annotations

import ctypes
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import fx

from .base.errors import BuildError, InternalError, Unsupported
from .base.events import Artifact, CompilerFailed, FellBack, is_recording, record, stage
from .base.options import Options
from .base.torch_facts import FakeTensorMode, OpOverload
from .codegen.c_file import CFile, write_file
from .codegen.host import HostProgram, write_host
from .graph.decompositions import Decomposition, default_decompositions
from .graph.interpret import interpret
from .graph.node_values import has_value, placeholders, set_value
from .graph.tracer import fake_like
from .loops.ir import Extern, Program
from .loops.printing import print_program
from .loops.verify import verify
from .lowering.lower import lower_graph
from .lowering.registry import lowering_of
from .runtime.c_build import build
from .runtime.cpu_features import cpu_features
from .runtime.process_symbols import OfferedSymbols
from .schedule.schedule import schedule

Compiled = Callable[..., tuple[object, ...]]


@dataclass(slots=True)
class _Once:
    """What has been said once already in this process."""

    warned: set[str] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)


_ONCE = _Once()


def compile_graph(gm: fx.GraphModule, example_inputs: Sequence[object], options: Options | None = None) -> Compiled:
    """Return a callable that computes what gm computes, always as a tuple.

    gm: call_function nodes with ATen overloads as targets, placeholders, one output; `meta["val"]` is filled in from
    example_inputs where it is missing.  The callable takes one value per placeholder.  With `options.strict` errors
    of ours are raised; otherwise the graph runs op by op and the error is recorded.
    """
    chosen = options if options is not None else Options()
    try:
        with stage("inductor"):
            return _compile(gm, example_inputs, chosen)
    except Unsupported as error:
        record(FellBack("graph", error.one_line()))
    except BuildError as error:
        if chosen.strict:
            raise
        record(FellBack("graph", error.one_line()))
        if chosen.warn_fallback:
            _warn_once(f"plumbline runs graphs op by op: {error.one_line()}")
    except Exception as error:
        if chosen.strict:
            raise
        record(CompilerFailed("inductor", "graph", f"{type(error).__name__}: {error}", traceback.format_exc()))
    return op_by_op(gm)


def extra_decompositions() -> Mapping[OpOverload, Decomposition]:
    """Return the decompositions that this backend wants applied before compile_graph: of what it has no loops for.

    Operators with a lowering stay whole: their loops follow eager's own formulas and rounding.
    """
    return {operator: rule for operator, rule in default_decompositions().items() if lowering_of(operator) is None}


def op_by_op(gm: fx.GraphModule) -> Compiled:
    """Return a callable that runs an ATen graph through ATen, one call after the other."""
    return lambda *inputs: interpret(gm, inputs)


def _warn_once(text: str) -> None:
    with _ONCE.lock:
        if text in _ONCE.warned:
            return
        _ONCE.warned.add(text)
    warnings.warn(text, stacklevel=3)


def _compile(gm: fx.GraphModule, example_inputs: Sequence[object], options: Options) -> Compiled:
    gm = with_values(gm, example_inputs)
    program = scheduled_program(gm, options)
    with stage("codegen"):
        host = write_host(program)
        segments = [(segment.loops, segment.parameters) for segment in host.segments]
        file = write_file(segments, program.buffers, OfferedSymbols(), cpu_features(), options.threads)
    _record_texts(program, host, file)
    with stage("build"):
        library = build(file.text, file.addresses, "graph", len(file.kernels), options) if host.segments else None
    return _bind(gm, program, host, library)


def scheduled_program(gm: fx.GraphModule, options: Options) -> Program:
    """Return the loop program of a graph after scheduling; verified along the way where options ask for it."""
    with stage("lowering"):
        program = lower_graph(gm)
        if options.verify:
            verify(program, "lowering")
    with stage("schedule"):
        return schedule(program, options)


def with_values(gm: fx.GraphModule, example_inputs: Sequence[object]) -> fx.GraphModule:
    """Return gm itself if every node has an example value, else a copy where they were computed on fake tensors."""
    if all(has_value(node) for node in gm.graph.nodes if node.op != "output"):
        return gm
    graph = fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    copied = fx.GraphModule(gm, graph)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [fake_like(value, mode) if isinstance(value, torch.Tensor) else value for value in example_inputs]
    if len(fakes) != len(placeholders(copied.graph)):
        raise InternalError("one example input per placeholder is needed", hint="pass as many as the graph has")

    def keep(node: fx.Node, value: object) -> object:
        set_value(node, value)
        return value

    with mode:
        interpret(copied, fakes, after=keep)
    return copied


def _record_texts(program: Program, host: HostProgram, file: CFile) -> None:
    if not is_recording():
        return
    record(Artifact("schedule", "loops.py", "python", print_program(program)))
    record(Artifact("codegen", "host.py", "python", host.text))
    record(Artifact("codegen", "graph.c", "c", file.text))


def _bind(gm: fx.GraphModule, program: Program, host: HostProgram, library: ctypes.CDLL | None) -> Compiled:
    """Return the host function, guarded against inputs laid out otherwise than the examples were."""
    scope: dict[str, object] = {
        "torch": torch, "empty": torch.empty, "empty_strided": torch.empty_strided, "restride": _restride,
        "on_failure": _failure_signal, **host.objects,
    }  # fmt: skip
    for number, segment in enumerate(host.segments):
        if library is None:
            raise InternalError("segments without a library", hint="report the graph")
        function = library[f"segment_{number}"]
        function.argtypes = [ctypes.c_void_p] * len(segment.parameters)
        function.restype = ctypes.c_int
        scope[f"segment_{number}"] = function
    exec(compile(host.text, "<plumbline host>", "exec"), scope)
    run = scope["run"]
    if not callable(run):
        raise InternalError("the host text defines no run()", hint="report the graph")
    expected = tuple(
        (buffer.shape, buffer.strides, buffer.dtype) if (buffer := program.buffers.get(name)) else None
        for name in program.inputs
    )
    calls = [step for step in program.steps if isinstance(step, Extern)]
    repeats = not any(step.ordered for step in calls)
    return _guarded(run, expected, gm, repeats=repeats, calls_aten=bool(calls))


def _guarded(
    run: Callable[..., object], expected: Sequence[object], gm: fx.GraphModule, *, repeats: bool, calls_aten: bool
) -> Compiled:
    """Return run with its inputs checked; an unexpected layout or a failed kernel goes op by op.

    repeats: whether running the graph again from the start is harmless (no random draws, no mutation).
    """
    slow = op_by_op(gm)

    def call(*inputs: torch.Tensor) -> tuple[object, ...]:
        for value, form in zip(inputs, expected, strict=True):
            if form is None:
                continue
            if (value.shape, value.stride(), value.dtype) != form or not value.is_cpu or value.is_neg():
                return slow(*inputs)
        if calls_aten:
            with torch.no_grad():
                result = run(*inputs)
        else:
            result = run(*inputs)
        if isinstance(result, _Failed):
            if not repeats:
                raise result.error()
            return slow(*inputs)  # raises eager's own error
        return result  # type: ignore[return-value]  # generated text returns a tuple

    return call


@dataclass(frozen=True, slots=True)
class _Failed:
    """A kernel stopped: code 1 an index out of range, code 2 an integer division by zero."""

    code: int

    def error(self) -> Exception:
        if self.code == 1:
            return IndexError("index out of range in a compiled graph")
        return RuntimeError("ZeroDivisionError")


def _failure_signal(code: int) -> _Failed:
    return _Failed(code)


def _restride(value: torch.Tensor, shape: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
    """Return a copy in the layout that kernels were compiled for (an operator's fake result promised another one)."""
    return torch.empty_strided(shape, strides, dtype=value.dtype).copy_(value)
