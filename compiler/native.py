"""compile_graph: a functional ATen graph becomes one callable that runs generated C.

The way down is a list: lower, schedule, write, build, load.  Whatever cannot be compiled runs op by op through ATen
with the reason recorded, so every graph has a right answer.
"""

from __future__ import annotations

import ctypes
import math
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import fx

from .base.errors import BuildError, InternalError, Unsupported
from .base.events import Artifact, FellBack, is_recording, record, stage
from .base.options import Options
from .base.torch_facts import FakeTensorMode, OpOverload
from .codegen.c_file import CFile, write_file
from .codegen.host import HostProgram, local, write_host
from .graph.decompositions import Decomposition, default_decompositions
from .graph.failure import report_graph_failure
from .graph.interpret import interpret
from .graph.node_values import has_value, placeholders, set_value
from .graph.open_sizes import is_open, open_name, size_values
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
from .symbolic.sizes import FUNCTIONS, assumptions

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
    example_inputs where it is missing.  The callable takes one value per placeholder.  Placeholders behind the tensors
    may be open sizes (`graph.open_sizes`): one library serves all of them, save where something was assumed of the
    sizes while compiling; for others it is compiled once more.  With `options.strict` errors of ours are raised;
    otherwise the graph runs op by op and the error is recorded.
    """
    chosen = options if options is not None else Options()
    opened = [node for node in placeholders(gm.graph) if is_open(node.meta.get("val"))]
    if opened:
        return _Forms(gm, [open_name(node) for node in opened], chosen).prepared(size_values(opened))
    return _compiled_or_slow(gm, example_inputs, chosen, {})


MOST_FORMS = 8  # libraries of one graph for different sizes; sizes beyond them run op by op


@dataclass(slots=True, eq=False)
class _Forms:
    """What is compiled of one graph with open sizes: (whether the sizes fit, what to run), newest last."""

    gm: fx.GraphModule
    names: list[str]
    options: Options
    made: list[tuple[Callable[..., object], Compiled]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def prepared(self, sizes: Mapping[str, float]) -> Compiled:
        """Compile for these sizes and return the callable for all."""
        self._make([sizes[name] for name in self.names])
        count = len(self.names)

        def call(*inputs: object) -> tuple[object, ...]:
            sizes = inputs[-count:]
            for fits, run in self.made:
                if fits(*sizes):
                    return run(*inputs)
            with self.lock:
                run = self._make([size for size in sizes if isinstance(size, int | float)])
            return run(*inputs)

        return call

    def _make(self, sizes: Sequence[float]) -> Compiled:
        for fits, run in self.made:  # another thread may have been faster
            if fits(*sizes):
                return run
        if len(self.made) >= MOST_FORMS:
            record(FellBack("graph", f"{MOST_FORMS} libraries for different sizes are in use"))
            return op_by_op(self.gm)
        with assumptions() as assumed:
            run = _compiled_or_slow(self.gm, (), self.options, dict(zip(self.names, sizes, strict=True)))
        for each in assumed:
            if " == " in each and not each.startswith("not "):
                record(FellBack("open size", f"kernels are built for {each}"))
        self.made.append((condition(self.names, list(assumed)), run))
        return run


def condition(names: Sequence[str], assumed: Sequence[str]) -> Callable[..., object]:
    """Return a function of open sizes, in order, that says whether all conditions over their names hold."""
    text = " and ".join(f"({each})" for each in assumed) or "True"
    made: Callable[..., object] = eval(f"lambda {', '.join(names)}: {text}", {**FUNCTIONS, "math": math})
    return made


def _compiled_or_slow(
    gm: fx.GraphModule, example_inputs: Sequence[object], chosen: Options, sizes: Mapping[str, float]
) -> Compiled:
    try:
        with stage("inductor"):
            return _compile(gm, example_inputs, chosen, sizes)
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
        report_graph_failure("inductor", gm, example_inputs, error, "inductor", chosen)
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


def _compile(
    gm: fx.GraphModule, example_inputs: Sequence[object], options: Options, sizes: Mapping[str, float]
) -> Compiled:
    gm = with_values(gm, example_inputs)
    program = scheduled_program(gm, options, sizes)
    with stage("codegen"):
        host = write_host(program)
        segments = [(segment.loops, segment.parameters) for segment in host.segments]
        file = write_file(segments, program.buffers, OfferedSymbols(), cpu_features(), options.threads, program.counts)
    _record_texts(program, host, file)
    with stage("build"):
        library = build(file.text, file.addresses, "graph", len(file.kernels), options) if host.segments else None
    return _bind(gm, program, host, library, options)


def scheduled_program(gm: fx.GraphModule, options: Options, sizes: Mapping[str, float] | None = None) -> Program:
    """Return the loop program of a graph after scheduling; verified along the way where options ask for it.

    sizes: what open sizes are in this call, by name.
    """
    with stage("lowering"):
        program = lower_graph(gm, sizes)
        if options.debug:
            record(Artifact("lowering", "loops.py", "python", print_program(program)))
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


def _bind(
    gm: fx.GraphModule, program: Program, host: HostProgram, library: ctypes.CDLL | None, options: Options
) -> Compiled:
    """Return the host function, guarded against inputs laid out otherwise than the examples were."""
    scope: dict[str, object] = {
        "torch": torch,
        "empty": torch.empty,
        "empty_strided": torch.empty_strided,
        "restride": _restride,
        "cpu": torch.device("cpu"),
        "on_failure": _failure_signal,
        "math": math,
        **FUNCTIONS,
        **host.objects,
    }
    for number, segment in enumerate(host.segments):
        if library is None:
            raise InternalError("segments without a library", hint="report the graph")
        function = library[f"segment_{number}"]
        open_sizes = [ctypes.c_longlong] * len(program.counts)
        function.argtypes = [*([ctypes.c_void_p] * len(segment.parameters)), *open_sizes]
        function.restype = ctypes.c_int
        scope[f"segment_{number}"] = function
    exec(compile(host.text, "<plumbline host>", "exec"), scope)
    run = scope["run"]
    if not callable(run):
        raise InternalError("the host text defines no run()", hint="report the graph")
    calls = [step for step in program.steps if isinstance(step, Extern)]
    repeats = not any(step.ordered for step in calls)
    rescue = _rescue(gm, options, repeats=repeats)
    if program.sizes:
        return _guarded_open(run, program, gm, rescue, repeats=repeats, calls_aten=bool(calls))
    expected = tuple(
        (buffer.shape, buffer.strides, buffer.dtype) if (buffer := program.buffers.get(name)) else None
        for name in program.inputs
    )
    return _guarded(run, expected, gm, rescue, repeats=repeats, calls_aten=bool(calls))


Rescue = Callable[[Exception, Sequence[object]], object]


def _rescue(gm: fx.GraphModule, options: Options, *, repeats: bool) -> Rescue:
    """Return what is done when generated code raises: the graph runs op by op, and the error is on record.

    If that raises too, it is eager's own error.  A graph that must not run twice lets the error through.
    """
    slow = op_by_op(gm)

    def run_op_by_op(error: Exception, inputs: Sequence[object]) -> object:
        if options.strict or not repeats:
            raise error
        try:
            result = slow(*inputs)
        except Exception as eagers:
            raise eagers from None
        report_graph_failure("compiled kernels", gm, inputs, error, "inductor", options)
        return result

    return run_op_by_op


def _guarded(
    run: Callable[..., object],
    expected: Sequence[object],
    gm: fx.GraphModule,
    rescue: Rescue,
    *,
    repeats: bool,
    calls_aten: bool,
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
        try:
            if calls_aten:
                with torch.no_grad():
                    result = run(*inputs)
            else:
                result = run(*inputs)
        except Exception as error:
            result = rescue(error, inputs)
        if isinstance(result, _Failed):
            if not repeats:
                raise result.error()
            return slow(*inputs)  # raises eager's own error
        return result  # type: ignore[return-value]  # generated text returns a tuple

    return call


def _guarded_open(
    run: Callable[..., object],
    program: Program,
    gm: fx.GraphModule,
    rescue: Rescue,
    *,
    repeats: bool,
    calls_aten: bool,
) -> Compiled:
    """Return run with its inputs checked against layouts computed from open sizes."""
    slow = op_by_op(gm)
    words = []
    for name in program.inputs:
        buffer = program.buffers.get(name)
        if buffer is not None:
            place = local(name)
            words.append(f"{place}.shape == {buffer.shape} and {place}.stride() == {buffer.strides}")
            words.append(f"{place}.dtype is torch.{str(buffer.dtype)[6:]} and {place}.is_cpu and not {place}.is_neg()")
    taken = ", ".join([*map(local, program.inputs), *program.sizes])
    fits = eval(f"lambda {taken}: {' and '.join(words) or True}", {"torch": torch, **FUNCTIONS})

    def call(*inputs: object) -> tuple[object, ...]:
        if not fits(*inputs):
            return slow(*inputs)
        try:
            if calls_aten:
                with torch.no_grad():
                    result = run(*inputs)
            else:
                result = run(*inputs)
        except Exception as error:
            result = rescue(error, inputs)
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
    return torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device).copy_(value)
