"""Stock torch.compile as a compiler under test: compiled through a recording backend, and intercepted for users.

The only file of the oracle that touches torch.compile, torch._dynamo and torch._inductor.  Importing these costs
seconds, so this file is imported where stock is asked for and nowhere else.
"""

import functools
import inspect
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch

with warnings.catch_warnings():  # torch deprecates parts of itself while it is imported; users cannot change that
    warnings.simplefilter("ignore")
    import torch._dynamo
    import torch._functorch.config as functorch_config
    import torch._inductor.config
    from torch._dynamo.eval_frame import skip_code
    from torch._dynamo.utils import counters
    from torch._inductor import compile_fx
    from torch._inductor.compiler_bisector import CompilerBisector

from .boundary_function import CODE as BOUNDARY_CODE
from .boundary_function import boundary_function, remember_compiled_module
from .captured_graphs import CallToCapture, CapturedGraph, cloned_inputs
from .compile_name import stock_compile
from .compilers import DECOMPOSED, LADDER, Candidate, CompileEvent, CompileRequest, CompileStatistics, cpu_seconds

STOCK_COMPILE: Callable[..., Any] = stock_compile(vars(torch))

_ISOLATED = {"isolate_recompiles": True} if "isolate_recompiles" in inspect.signature(STOCK_COMPILE).parameters else {}
_CALLS = frozenset({"call_function", "call_method", "call_module"})
_NAMED = frozenset({"fullgraph", "dynamic", "mode", "options", "backend", "disable"})


class _RecordingBackend:
    """A backend that counts the graphs it gets and passes them to a stock backend."""

    def __init__(self, name: str, request: CompileRequest) -> None:
        self.compiler_name = name
        self.graphs = 0
        self.ops = 0
        self.seconds = 0.0
        self._backend = _stock_backend(name, request)

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        self.graphs += 1
        self.ops += sum(node.op in _CALLS for node in graph.graph.nodes)
        started = time.perf_counter()
        compiled: Callable[..., Any] = self._backend(graph, inputs)
        self.seconds += time.perf_counter() - started
        return compiled


def _stock_backend(name: str, request: CompileRequest) -> Callable[..., Any]:
    if name == "inductor" and any(switches.without_inductor for switches in _SWITCHES):
        name = "aot_eager_decomp_partition"
    if name == "inductor":
        wrapper: Callable[..., Any] = torch._TorchCompileInductorWrapper
        mode = request.mode or (None if request.options else "default")
        options = dict(request.options) if request.options else None
        supported = inspect.signature(wrapper).parameters
        extra = {"name": None} if "name" in supported else {}
        backend: Callable[..., Any] = wrapper(mode, options, request.dynamic, **extra)
        return backend
    named: Callable[..., Any] = torch._dynamo.lookup_backend(name)
    return named


class StockCandidate:
    """A function or module compiled by stock torch.compile."""

    def __init__(self, target: Callable[..., Any], backend: str, request: CompileRequest, rng: str) -> None:
        self._recorder = _RecordingBackend(backend, request)
        self._own_draws = backend == "inductor" and rng == "eager"
        self._native_draws = backend == "inductor" and rng == "native"
        self._breaks: dict[str, None] = {}
        self._first_graphs: int | None = None
        self._compile_cpu = 0.0
        self._compiled = STOCK_COMPILE(
            target,
            backend=self._recorder,
            fullgraph=request.fullgraph,
            dynamic=request.dynamic,
            **{**_ISOLATED, **request.extra},
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run compiled; inductor takes eager's draws where asked to."""
        before, graphs, started = dict(counters["graph_break"]), self._recorder.graphs, cpu_seconds()
        draws = (
            torch._inductor.config.patch(fallback_random=self._own_draws)
            if self._own_draws or self._native_draws
            else nullcontext()
        )
        try:
            with draws, warnings.catch_warnings():
                # Under `-W error` stock's warnings about itself would become faults of the program under test.
                warnings.filterwarnings("ignore", module=r"torch\._(dynamo|inductor|functorch|subclasses)|torch\.jit")
                return self._compiled(*args, **kwargs)
        finally:
            for reason, count in counters["graph_break"].items():
                if count > before.get(reason, 0):
                    self._breaks.setdefault(" ".join(str(reason).split())[:300])
            if self._first_graphs is None:
                self._first_graphs = self._recorder.graphs
            if self._recorder.graphs > graphs:
                self._compile_cpu += cpu_seconds() - started

    def statistics(self) -> CompileStatistics:
        """Return what the recording backend saw; graphs compiled after the first call are recompiles."""
        recorder = self._recorder
        recompiles = recorder.graphs - (self._first_graphs or 0)
        reasons = tuple(self._breaks)
        events = tuple(CompileEvent("graph_break", reason) for reason in reasons)
        return CompileStatistics(
            recorder.graphs, recorder.ops, reasons, recompiles, recorder.seconds, events, self._compile_cpu
        )


def registered_backends() -> list[str]:
    """Return all names of backends that stock takes now, users' own among them."""
    return list(torch.compiler.list_backends(exclude_tags=()))


class StockTorch:
    """Stock torch.compile with the backends of the ladder and the rung beside it."""

    name = "torch"
    backends: tuple[str, ...] = (*LADDER, DECOMPOSED)
    double_backward = False

    def __init__(self) -> None:
        self._donates: bool | None = None  # the user's setting, while it is another one here

    def compile(self, target: Callable[..., Any], backend: str, request: CompileRequest, *, rng: str) -> Candidate:
        """Compile with the named stock backend; the user's mode and options reach inductor only."""
        # A backward that may overwrite what forward saved runs once only; stock's disk cache may have such a one.
        if self._donates is None:
            self._donates = functorch_config.donated_buffer
        functorch_config.donated_buffer = False
        return StockCandidate(target, backend, request, rng)

    def reset(self) -> None:
        """Drop all of Dynamo's caches and counters."""
        if self._donates is not None:
            functorch_config.donated_buffer, self._donates = self._donates, None
        torch._dynamo.reset()
        counters.clear()


# -- interception: users' own torch.compile ----------------------------------------------------------------------------

skip_code(BOUNDARY_CODE)  # after a break stock must not trace the wrapper


def install() -> None:
    """Replace torch.compile by one whose calls the judge may take."""
    torch.compile = intercepted_compile


@functools.wraps(STOCK_COMPILE)
def intercepted_compile(model: Any = None, **options: Any) -> Any:
    """Compile as stock does, and remember what was compiled, so that a judge can take the calls."""
    if model is None:
        return lambda target: intercepted_compile(target, **options)
    stock = STOCK_COMPILE(model, **options)
    backend = options.get("backend")
    if isinstance(model, type) or options.get("disable") or not (backend is None or isinstance(backend, str)):
        return stock  # a callable backend belongs to the user and is not judged
    request = _request(options)
    if isinstance(model, torch.nn.Module):
        remember_compiled_module(stock, model, request)
        return stock
    return boundary_function(model, request, stock)


def _request(options: dict[str, Any]) -> CompileRequest:
    extra = {name: value for name, value in options.items() if name not in _NAMED and name not in _ISOLATED}
    return CompileRequest(
        fullgraph=bool(options.get("fullgraph", False)),
        dynamic=options.get("dynamic"),
        mode=options.get("mode"),
        options=options.get("options"),
        extra=extra,
    )


# -- graphs: what stock passes from stage to stage, for the minifier ---------------------------------------------------

GraphProgram = Callable[..., object]
_QUIET_MODULES = r"torch\._(dynamo|inductor|functorch|subclasses)|torch\.jit"


class StockGraphs:
    """Stock's graphs after Dynamo and after AOTAutograd: captured from a call, and compiled one by one."""

    name = "torch"

    def capture(self, call: CallToCapture, after: str) -> list[CapturedGraph]:
        """Compile the target, let the call run it, and return the graphs in the order of their first run.

        No backend runs: each graph is executed operator by operator, so a backend that crashes or hangs
        cannot do so here.  after: "dynamo" (torch-level graphs) or "aot" (what inductor's inner compiler gets).
        """
        graphs: list[CapturedGraph] = []

        def keep(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> GraphProgram:
            if after == "dynamo":
                return _recorded(graph, f"graph {len(graphs)}", graphs, boxed=False)
            inner = functools.partial(_keep_inner, graphs)
            wrapped: Any = compile_fx.compile_fx(
                graph,
                inputs,
                inner_compile=inner,  # type: ignore[arg-type]  # any callable of graph and inputs serves
                config_patches=_patches(call.request),
            )
            program: GraphProgram = wrapped
            return program

        torch._dynamo.reset()
        with _graph_settings(call.request), functorch_config.patch(enable_autograd_cache=False):
            options = {
                "fullgraph": call.request.fullgraph,
                "dynamic": call.request.dynamic,
                **_ISOLATED,
                **call.request.extra,
            }
            call.drive(STOCK_COMPILE(call.target, backend=keep, **options))
        torch._dynamo.reset()
        return graphs

    def compile(
        self, graph: torch.fx.GraphModule, inputs: Sequence[Any], backend: str, after: str, request: CompileRequest
    ) -> GraphProgram:
        """Compile one graph with a named backend, from no cache; the callable takes one value per placeholder.

        The compiler may change the graph.  Raises what stock raises.
        """
        with _graph_settings(request), functorch_config.patch(enable_autograd_cache=False):
            if after == "aot" and backend == "inductor":
                compiled: Any = compile_fx.compile_fx_inner(graph, inputs, **_inner_facts(graph))
            elif backend == "inductor":
                compiled = compile_fx.compile_fx(graph, inputs, config_patches=_patches(request))
            elif after == "aot" or backend == "eager":
                compiled = graph.forward
            else:
                compiled = torch._dynamo.lookup_backend(backend)(graph, list(inputs))
        boxed = after == "aot" and bool(getattr(compiled, "_boxed_call", False))  # Dynamo calls backends plainly

        def program(*args: object) -> object:
            with _graph_settings(request):
                return compiled(list(args)) if boxed else compiled(*args)

        return program

    def settings(self) -> str:
        """Return Python statements that set every configuration value of stock that was changed in this process."""
        lines = []
        for part, before in _SETTINGS_AT_IMPORT:
            for name, value in sorted(part.get_config_copy().items()):
                if value != before.get(name) and name not in _OUR_SETTINGS and isinstance(value, _WRITABLE):
                    lines.append(f"{part.__name__}.{name} = {value!r}")
        return "\n".join(lines)


# Irrelevant to a failure, or set by us for every run.
_OUR_SETTINGS = ("fallback_random", "enable_autograd_cache", "fx_graph_cache", "compile_threads", "debug_dir_root")
_WRITABLE = (bool, int, float, str, type(None), list, tuple, dict, set)
_CONFIGURATIONS: tuple[Any, ...] = (torch._dynamo.config, torch._inductor.config, functorch_config)
_SETTINGS_AT_IMPORT = [(part, part.get_config_copy()) for part in _CONFIGURATIONS]


@contextmanager
def _graph_settings(request: CompileRequest) -> Iterator[None]:
    """Use eager's draws and the user's options; no caches, no warnings of stock about itself."""
    patches = {"fallback_random": True, "fx_graph_cache": False, **_patches(request)}
    with torch._inductor.config.patch(patches), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=_QUIET_MODULES)
        yield


def _patches(request: CompileRequest) -> dict[str, Any]:
    """Return the inductor configuration that the user's mode and options stand for."""
    if not request.mode and not request.options:
        return {}
    return dict(getattr(_stock_backend("inductor", request), "config", {}))


def _keep_inner(
    graphs: list[CapturedGraph], graph: torch.fx.GraphModule, inputs: Sequence[Any], **facts: Any
) -> GraphProgram:
    """Replace inductor's inner compiler: record the graph and run it as written."""
    label = "backward" if facts.get("is_backward") else "inference" if facts.get("is_inference") else "forward"
    return _recorded(graph, label, graphs, boxed=True)


def _recorded(graph: torch.fx.GraphModule, label: str, graphs: list[CapturedGraph], *, boxed: bool) -> GraphProgram:
    copied = torch.fx.GraphModule(graph, _copied(graph.graph))
    captured = False

    def run(args: Sequence[object]) -> object:
        nonlocal captured
        if not captured:  # the first run only
            captured = True
            graphs.append(CapturedGraph(copied, cloned_inputs(args), label))
        return graph.forward(*args)

    if not boxed:
        return lambda *args: run(args)

    def run_boxed(args: list[object]) -> object:
        values = list(args)
        args.clear()
        return run(values)

    vars(run_boxed)["_boxed_call"] = True
    return run_boxed


def _copied(graph: torch.fx.Graph) -> torch.fx.Graph:
    """Return a copy whose nodes keep the user's lines and no other metadata."""
    copied = torch.fx.Graph()
    mapping: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in graph.nodes:
        mapping[node] = copied.node_copy(node, mapping.__getitem__)
        mapping[node].meta = {"stack_trace": node.meta.get("stack_trace")}
    return copied


def _inner_facts(graph: torch.fx.GraphModule) -> dict[str, Any]:
    """Return what AOTAutograd would tell the inner compiler about this graph."""
    names = [str(node.target) for node in graph.graph.nodes if node.op == "placeholder"]
    return {"is_backward": True} if any(name.startswith("tangents_") for name in names) else {}


# -- switches: what of stock can be left out, for the bisector ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StockApplication:
    """One thing that stock says it is about to do: the subsystem, its number there, and stock's words for it."""

    subsystem: str
    number: int
    what: str


@dataclass(slots=True)
class StockSwitches:
    """Which parts of stock are in force.

    options: (configuration, name) -> value.  subsystem: the one of `STOCK_SUBSYSTEMS` that is limited.  most: how many
    of its applications happen, the first ones.  without_inductor: inductor's decompositions and partition, run by ATen.
    caches: graphs come from the caches on disk, which are empty at first; nothing is counted then.
    applied: what happened, filled while it compiles.
    """

    options: Mapping[tuple[str, str], object] = field(default_factory=dict)
    subsystem: str = ""
    most: int = 0
    without_inductor: bool = False
    caches: bool = False
    applied: list[StockApplication] = field(default_factory=list)

    def is_off(self, subsystem: str, words: Callable[[], str] | None) -> bool:
        """Return whether stock is to leave out what it is about to do; it is on record if it is not."""
        number = sum(each.subsystem == subsystem for each in self.applied)
        if subsystem == self.subsystem and number >= self.most:
            return True
        self.applied.append(StockApplication(subsystem, number, " ".join(words().split())[:200] if words else ""))
        return False


STOCK_SUBSYSTEMS = ("decomposition", "pre_grad_passes", "joint_graph_passes", "post_grad_passes", "lowerings")
"""What stock counts for its own bisector, in the order of its pipeline."""

_NOTHING_DYNAMIC = (("dynamo", "specialize_float", True), ("dynamo", "automatic_dynamic_shapes", False))
# By the backend that is wrong first: options that leave out something, or do it in the plainer way.
STOCK_OPTIONS: Mapping[str, tuple[tuple[str, str, object], ...]] = {
    "eager": (
        ("dynamo", "specialize_float", True),
        ("dynamo", "specialize_int", True),
        ("dynamo", "automatic_dynamic_shapes", False),
        ("dynamo", "guard_nn_modules_using_dict_tags", False),
        ("dynamo", "skip_tensor_guards_with_matching_dict_tags", False),
        ("dynamo", "skip_nnmodule_hook_guards", False),
        ("dynamo", "skip_no_tensor_aliasing_guards_on_parameters", False),
        ("dynamo", "assume_dunder_attributes_remain_unchanged", False),
        ("dynamo", "enable_cpp_guard_manager", False),
        ("dynamo", "inline_inbuilt_nn_modules", False),
        ("dynamo", "trace_numpy", False),
        ("dynamo", "enable_trace_contextlib", False),
        ("dynamo", "capture_autograd_function", False),
        ("dynamo", "capture_func_transforms", False),
        ("dynamo", "use_numpy_random_stream", True),
        ("dynamo", "rewrite_assert_with_torch_assert", False),
        ("dynamo", "enable_dynamo_decompositions", False),
        ("dynamo", "fake_tensor_cache_enabled", False),
    ),
    "aot_eager": (
        ("functorch", "view_replay_for_aliased_outputs", False),
        ("functorch", "treat_parameters_as_free_to_save", False),
        ("functorch", "guess_tangent_strides_as_outputs", False),
        ("functorch", "graphsafe_rng_functionalization", False),
        ("functorch", "static_weight_shapes", False),
        *_NOTHING_DYNAMIC,
    ),
    "aot_eager_decomp_partition": (
        ("functorch", "cse", False),
        ("functorch", "ban_recompute_used_far_apart", False),
        ("functorch", "treat_parameters_as_free_to_save", False),
    ),
    "inductor": (
        ("inductor", "emulate_precision_casts", True),
        ("inductor", "eager_numerics.division_rounding", True),
        ("inductor", "cpp.simdlen", 1),
        ("inductor", "cpp.threads", 1),
        ("inductor", "cpp.enable_loop_tail_vec", False),
        ("inductor", "cpp.enable_tiling_heuristics", False),
        ("inductor", "split_reductions", False),
        ("inductor", "online_softmax", False),
        ("inductor", "inplace_buffers", False),
        ("inductor", "allow_buffer_reuse", False),
        ("inductor", "pattern_matcher", False),
        ("inductor", "joint_graph_constant_folding", False),
        ("inductor", "constant_and_index_propagation", False),
        ("inductor", "optimize_scatter_upon_const_tensor", False),
        ("inductor", "layout_optimization", False),
        ("inductor", "comprehensive_padding", False),
        ("inductor", "epilogue_fusion", False),
        ("inductor", "max_fusion_size", 1),
        *_NOTHING_DYNAMIC,
    ),
}
STOCK_CACHES: tuple[tuple[str, str, object], ...] = (
    ("inductor", "fx_graph_cache", False),
    ("functorch", "enable_autograd_cache", False),
)
"""Options that leave out a cache of graphs on disk."""
_CACHE_FOLDER = "TORCHINDUCTOR_CACHE_DIR"
_CONFIGURATION = {"dynamo": torch._dynamo.config, "inductor": torch._inductor.config, "functorch": functorch_config}
_SWITCHES: list[StockSwitches] = []


@contextmanager
def stock_switched(switches: StockSwitches) -> Iterator[None]:
    """Put switches in force inside the block; no graph comes from caches or goes into them unless that is asked."""
    patches: dict[str, dict[str, Any]] = {"dynamo": {}, "functorch": {}, "inductor": {}}
    for part, name, _ in STOCK_CACHES:
        patches[part][name] = switches.caches
    for (part, name), value in switches.options.items():
        if name in _CONFIGURATION[part].get_config_copy():  # versions of torch differ
            patches[part][name] = value

    def disable_subsystem(backend: str, subsystem: str, debug_info: Callable[[], str] | None = None) -> bool:
        del backend
        return subsystem in STOCK_SUBSYSTEMS and switches.is_off(subsystem, debug_info)

    bisector: Any = CompilerBisector
    saved = {name: bisector.__dict__[name] for name in ("disable_subsystem", "bisection_enabled")}
    torch._dynamo.reset()
    with ExitStack() as stack:
        for part, changes in patches.items():
            if changes:
                stack.enter_context(_CONFIGURATION[part].patch(changes))
        if switches.caches:
            folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            stack.enter_context(mock.patch.dict(os.environ, {_CACHE_FOLDER: folder}))
        # Under its own bisector stock keeps no graphs.
        bisector.disable_subsystem, bisector.bisection_enabled = staticmethod(disable_subsystem), not switches.caches
        _SWITCHES.append(switches)
        try:
            yield
        finally:
            _SWITCHES.remove(switches)
            for name, value in saved.items():
                setattr(bisector, name, value)
            torch._dynamo.reset()
