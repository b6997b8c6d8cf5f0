"""compile_with_autograd: a torch-level graph -> a callable of exactly its meaning, computed by compiled ATen graphs.

The callable is specialised to facts that traced code depends on and that nobody upstream promises: which inputs
require grad or are leaves, which are one object, which share memory with one that is written, grad mode, autocast.
For other facts it specialises again. What cannot be compiled exactly runs `gm` as it is, with a recorded reason.
"""

import gc
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from sys import is_finalizing
from typing import Any, cast

import torch
from torch import fx

from ..base.bisecting.applications import Gate, gate_for
from ..base.debug_folder import DebugFolder, later_part, open_folder
from ..base.dense_order import dense_order
from ..base.errors import CallersFailure, InternalError, PlumblineError, Unsupported
from ..base.events import SHAPE_RULE, Artifact, FellBack, RanEagerly, is_recording, record, stage
from ..base.locks import ForkedLock
from ..base.noted_warnings import noted_warnings
from ..base.options import Options
from ..base.torch_facts import (
    FakeTensor,
    OpOverload,
    forward_ad_is_active,
    functorch_is_active,
    hidden_tensor_hooks,
)
from ..comparison.first_call import StageDeparture
from ..graph.checks import verify
from ..graph.dynamic_sizes import with_size_inputs
from ..graph.effects.undo import HOOKED, WARNED, effects_of, undoing
from ..graph.graph_failure import fails_by_itself, report_graph_failure
from ..graph.graph_interpreter import interpret, run_op_by_op
from ..graph.graph_printing import graph_text
from ..graph.node_values import origin_of, outputs, placeholders, tensor_of
from ..graph.passes import SIMPLIFY, run_passes
from ..graph.promises import MetadataDeparture, going_on
from ..graph.tracer import Decomposition
from .call_wrappers import finisher, run_before_hooks_fail, run_plain, without_base
from .captured_again import CapturedAgain, captured_again
from .dynamic_arguments import NOTHING_DYNAMIC, DynamicArguments, Fits, dynamic_arguments
from .form_levels import FormStages, tangent_layouts
from .form_validation import FormValidation
from .function import CompiledBackward, CompiledPair, Pattern
from .gradient_paths import GradientPaths, gradient_paths
from .independent_results import ResultPart, kept_for, parts_of
from .joint import JointProgram, Traced, autocast_state, trace_call
from .partition import JointGraph, Partition, backward_graph, partition, stamp_of
from .stages.backward_stages import backward_stages
from .stages.gradient_buckets import BucketCaps, current_caps, expected_buckets
from .stages.staged_function import CompiledStage, StagedPair

Tensors = Sequence[torch.Tensor]
CompileGraph = Callable[[fx.GraphModule, Tensors], Callable[..., Tensors]]
Cut = Callable[[JointGraph], Partition]
Sizes = tuple[float, ...]
Call = Callable[[Sequence[object], Sizes], tuple[object, ...]]
Form = tuple[Fits | None, Call]  # whether it may be used for these dynamic sizes (None: for all), and what to run


def compile_with_autograd(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    compile_graph: CompileGraph,
    options: Options,
    *,
    decompositions: Mapping[OpOverload, Decomposition] | None = None,
    recompute: bool = True,
    guarded: bool = False,
    halves: "Halves | None" = None,
) -> "CompiledCall":
    """Return a callable with the meaning of `gm`: values, gradients, mutations, aliases, strides, random draws.

    gm: torch-level, every tensor a placeholder, output a tuple. example_inputs: tensors and numbers as they will
    come; sizes that are symbolic in the example values of gm are traced as symbols, others fixed.
    compile_graph: compiles one functional ATen graph whose placeholders are tensors, then dynamic sizes; called for
    the forward at once, for a backward when it first runs. recompute: whether backward may compute cheap values
    again. guarded: the caller promises at every call what `facts_of_call` would tell of the example inputs, so
    nobody looks again. halves: what the caller does to the two halves instead.
    """
    dynamic = dynamic_arguments(gm)
    compiled = CompiledCall(
        gm, compile_graph, options, dict(decompositions or {}), recompute, guarded, dynamic, halves or Halves()
    )
    compiled.specialise(tuple(example_inputs))
    return compiled


@dataclass(frozen=True, slots=True)
class Halves:
    """What a caller does to the halves of a graph with gradients: how they are cut, and what compiles the backward.

    None: what plumbline does.  What these raise has to be a CallersFailure; it is raised where it happens.
    """

    cut: Cut | None = None
    compile_backward: CompileGraph | None = None


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The facts a specialisation rests on; equal facts mean the same traced graph."""

    grad_enabled: bool
    inference: bool
    autocast: tuple[object, ...]
    inputs: tuple[object, ...]
    buckets: BucketCaps | None


def facts_of_call(arguments: Sequence[object], dynamic: DynamicArguments = NOTHING_DYNAMIC) -> Assumptions:
    """Return the facts of a call, dynamic sizes left out."""
    first: dict[int, int] = {}
    facts: list[object] = []
    for position, value in enumerate(arguments):
        if isinstance(value, torch.Tensor):
            same = first.setdefault(id(value), position)
            kind = (type(value), value.dtype, value.device, value.requires_grad, value.is_leaf)
            labels = dynamic.tensors.get(position)
            order = None if labels is None else dense_order(value.shape, value.stride())
            if labels is not None and order is not None:
                fixed = [size if label is None else None for size, label in zip(value.shape, labels, strict=True)]
                facts.append((*kind, *fixed, order, same))
            else:
                facts.append((*kind, value.shape, value.stride(), same))
        else:
            facts.append((type(value), None if position in dynamic.numbers else value))
    state = (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast_state())
    return Assumptions(*state, tuple(facts), current_caps())


@dataclass(slots=True, eq=False)
class CompiledCall:
    """The callable that compile_with_autograd returns. fallback_reason: why the newest specialisation runs eagerly."""

    gm: fx.GraphModule
    compile_graph: CompileGraph
    options: Options
    decompositions: dict[OpOverload, Decomposition]
    recompute: bool
    guarded: bool = False
    dynamic: DynamicArguments = NOTHING_DYNAMIC
    halves: Halves = field(default_factory=Halves)
    fallback_reason: str | None = None
    # the forms for what the caller promised, by what it does not: who sends the gradients
    _promised: dict[BucketCaps | None, list[Form]] = field(default_factory=dict)
    _calls: dict[Assumptions, list[Form]] = field(default_factory=dict)
    _uncompiled: Callable[..., tuple[object, ...]] | None = None
    lock: ForkedLock = field(default_factory=ForkedLock)

    def __call__(self, *arguments: object) -> tuple[object, ...]:
        """Run the program on real arguments; under a transform of torch.func or forward-mode AD as it is."""
        if functorch_is_active() or forward_ad_is_active():
            return self._as_it_is(arguments)
        promised = self.guarded and self._promised
        sizes = self.dynamic.read(arguments) if self.dynamic.places else ()
        forms = self._promised.get(current_caps()) if promised else None
        if not promised:
            forms = self._calls.get(facts_of_call(arguments, self.dynamic))
        for fits, call in forms or ():
            if fits is None or fits(*sizes):
                return call(arguments, sizes)
        if any(isinstance(value, FakeTensor) for value in arguments) or is_finalizing():
            return self._as_it_is(arguments)
        return self._specialised(arguments, sizes)(arguments, sizes)

    def _as_it_is(self, arguments: Sequence[object]) -> tuple[object, ...]:
        """Run the graph as it was captured; if it fails, nothing of it stays."""
        if self._uncompiled is None:
            self._uncompiled = undoing(lambda *inputs: interpret(self.gm, inputs), effects_of(self.gm))
        with noted_warnings([], self.gm.meta.get(WARNED, ())):  # which are given when it has run, as for compiled code
            result: tuple[object, ...] = self._uncompiled(*arguments)
        return result

    def _specialised(self, arguments: tuple[object, ...], sizes: Sizes) -> Call:
        """Return the form that another thread has made meanwhile, or make one."""
        with self.lock:
            for fits, call in self._calls.get(facts_of_call(arguments, self.dynamic), ()):
                if fits is None or fits(*sizes):
                    return call
            return self.specialise(arguments)

    def specialise(self, arguments: tuple[object, ...]) -> Call:
        """Compile for arguments like these; on failure the graph itself is the compiled code."""
        forms = self._calls.setdefault(facts_of_call(arguments, self.dynamic), [])
        self.fallback_reason = None
        gate = gate_for(self.options.bisect, "captured graph")
        try:
            if gate is not None and not _is_traced(self.gm, gate):
                form: Form = (None, lambda arguments, _: self._as_it_is(arguments))
            else:
                with _undisturbed():
                    form = self._compile(arguments, self._dynamic_here(arguments), gate)
        except CallersFailure:
            raise
        except Exception as error:  # whatever goes wrong here, the program itself still runs
            dynamic = bool(self.dynamic.labels)
            form = self._fixed_form(arguments, error, gate) if dynamic else self._as_it_is_after(error, arguments)
        forms.append(form)
        self._promised.setdefault(current_caps(), forms)
        return form[1]

    def _dynamic_here(self, arguments: Sequence[object]) -> DynamicArguments:
        """Return what can stay dynamic: nothing where a size is 0 or 1, or a tensor has gaps."""
        dynamic = self.dynamic
        tensors = [value for p in dynamic.tensors if isinstance(value := arguments[p], torch.Tensor)]
        sized = all(dense_order(value.shape, value.stride()) is not None for value in tensors)
        pairs = zip(dynamic.read(arguments), dynamic.places, strict=True)
        return (
            dynamic if sized and all(size > 1 or dimension < 0 for size, (_, dimension) in pairs) else NOTHING_DYNAMIC
        )

    def _fixed_form(self, arguments: tuple[object, ...], error: Exception, gate: Gate | None) -> Form:
        """Compile for the sizes of this call only, after it failed with dynamic ones; if that fails too, it says why.

        Rules for symbols word a refusal as they please, as a ValueError where the kernel raises a RuntimeError.
        """
        if self.options.strict and not isinstance(error, RuntimeError | Unsupported):
            raise error
        record(FellBack("dynamic sizes", f"compiled for the sizes of this call: {type(error).__name__}: {error}"))
        try:
            with _undisturbed():
                return self._compile(arguments, NOTHING_DYNAMIC, gate)
        except Exception as fixed:  # no variable may hold it: its traceback has the arguments
            return self._as_it_is_after(fixed, arguments)

    def _as_it_is_after(self, error: Exception, arguments: tuple[object, ...]) -> Form:
        """Say why the graph runs as it is: we lack something, the program fails, or an error of ours."""
        what = error.what if isinstance(error, PlumblineError) else f"{type(error).__name__}: {error}"
        hint = error.hint if isinstance(error, PlumblineError) else "expected where eager raises too; else report it"
        refused = isinstance(error, RuntimeError | Unsupported)  # by torch, which may refuse the backward alone, or us
        ours = isinstance(error, InternalError) or not (refused or fails_by_itself(self.gm, arguments))
        if ours and self.options.strict:
            raise error
        self.fallback_reason = what
        record(RanEagerly("captured graph", "autograd", what, hint, None))
        unreported = [error] if ours else []

        def as_it_is(arguments: Sequence[object], sizes: Sizes) -> tuple[object, ...]:
            result = self._as_it_is(arguments)
            while unreported:  # kernels refuse what shape rules let pass: then it was the program's error after all
                report_graph_failure("autograd", self.gm, arguments, unreported.pop(), "aot_eager", self.options)
            return result

        return None, as_it_is

    def _compile(self, arguments: tuple[object, ...], dynamic: DynamicArguments, gate: Gate | None) -> Form:
        metadata, sizes = JointProgram.metadata(arguments, dynamic), dynamic.read(arguments)
        state = (torch.is_grad_enabled(), autocast_state())
        keeps = self.options.validates
        rules = self.decompositions
        program = JointProgram(self.gm, metadata, *state, rules, dynamic, sizes, keeps_recorded=keeps, gate=gate)
        with stage("joint"):
            traced = trace_call(program)
        _demand_written_apart(traced, arguments)
        joint = self._simplified(traced.joint, "joint")
        paths = gradient_paths(traced, joint.graph.graph, bool(self.gm.meta.get(HOOKED)))
        if traced.signature.is_differentiable:
            if torch.is_inference_mode_enabled():
                raise Unsupported("a result requires grad in inference mode", hint="expected: the graph runs eagerly")
            with stage("partition"):
                cut = self._cut(joint, gate)
            validation = self._validation(program, traced, joint, cut)
            again = captured_again(program, traced, arguments, paths.unreached)
            backwards = _Backwards(self, program, traced, cut, validation)
            run = self._compile_pair(backwards, joint, paths, again, arguments)
        else:
            validation, run = self._validation(program, traced, joint, None), self._compile_forward(traced, joint)
        for label in traced.sizes.fixed():
            record(FellBack("dynamic sizes", f"the traced operations need {label} to be what it is in this call"))
        signature = traced.signature
        written = [signature.inputs[fact.input] for fact in signature.writes]
        finish, positions = finisher(signature, list(traced.sizes.symbols)), signature.inputs

        departed = False

        def call(arguments: Sequence[object], sizes: Sizes) -> tuple[object, ...]:
            nonlocal departed
            if departed:
                return interpret(self.gm, arguments)
            sizes = sizes if dynamic.labels else ()
            if written and _shares_memory(arguments, signature.inputs, written):
                record(RanEagerly("captured graph", "autograd", "a written input shares memory", _APART, None))
                return self._as_it_is(arguments)
            if validation is not None and validation.departs(arguments, sizes):
                return self._as_it_is(arguments)
            inputs = [arguments[position] for position in positions]
            if paths.are_watched(inputs):
                record(RanEagerly("captured graph", "autograd", _WATCHED, _WITHOUT_HOOKS, None))
                return self._as_it_is(arguments)
            try:
                if written:
                    return run_before_hooks_fail(
                        lambda: run(inputs, sizes), lambda values: finish(arguments, values, sizes)
                    )
                values = run(inputs, sizes)
            except MetadataDeparture as departure:
                departed = True
                record(RanEagerly("captured graph", SHAPE_RULE, str(departure), _CORRECT, None))
                return self._as_it_is(arguments)
            return finish(arguments, values, sizes)

        return self._condition(traced, arguments, dynamic), call

    def _condition(self, traced: Traced, arguments: Sequence[object], dynamic: DynamicArguments) -> Fits | None:
        """Return which dynamic sizes a compiled call is right for; asked last, for compiling may assume more."""
        if dynamic.labels or not self.dynamic.labels:
            return traced.sizes.condition()
        values = self.dynamic.read(arguments)
        return lambda *sizes: sizes == values

    def _simplified(self, joint: JointGraph, name: str) -> JointGraph:
        if self.options.verify:
            verify(joint.graph, functional=True, costly=True, after="functionalize")
        graph = run_passes(joint.graph, SIMPLIFY, self.options, stage="joint")
        if is_recording():
            record(Artifact("autograd", name, "python", graph_text(graph).text))
        return JointGraph(graph, joint.inputs, joint.returned, joint.tangents, joint.escaping, joint.written)

    def _cut(self, joint: JointGraph, gate: Gate | None) -> Partition:
        if self.halves.cut is not None:
            return self.halves.cut(joint)
        return partition(joint, recompute=self.recompute, budget=self.options.save_budget, gate=gate)

    def _compile_forward(self, traced: Traced, joint: JointGraph) -> Callable[[Sequence[object], Sizes], Tensors]:
        compiled = self._compile_graph(joint.graph, traced)
        constants, views = traced.constants, traced.signature.views

        def run(tensors: Sequence[object], sizes: Sizes) -> Tensors:
            values = run_plain(compiled, (*tensors, *constants, *sizes))
            return [value if place in views else without_base(value) for place, value in enumerate(values)]

        return run

    def _validation(
        self, program: JointProgram, traced: Traced, joint: JointGraph, cut: Partition | None
    ) -> FormValidation | None:
        """Return what holds a form to the captured graph; None where the options do not ask for it."""
        if not self.options.validates:
            return None
        stages = FormStages(program, traced, joint, cut)
        return FormValidation(stages, self._report_departure, self.options.strict)

    def _report_departure(self, error: StageDeparture, arguments: Sequence[object]) -> None:
        self.fallback_reason = error.what
        report_graph_failure(error.stage, self.gm, arguments, error, "aot_eager", self.options)

    def _compile_pair(
        self,
        backwards: "_Backwards",
        joint: JointGraph,
        paths: GradientPaths,
        again: CapturedAgain | None,
        arguments: Sequence[object],
    ) -> Callable[[Sequence[object], Sizes], Tensors]:
        traced, cut = backwards.traced, backwards.cut
        if is_recording():
            record(Artifact("autograd", "forward", "python", graph_text(cut.forward).text))
            record(Artifact("autograd", "backward", "python", graph_text(cut.backward).text))
        pair = partial(
            CompiledPair,
            signature=traced.signature,
            forward=self._compile_graph(cut.forward, traced),
            kept=cut.kept,
            constants=traced.constants,
            tangents=joint.tangents,
            layouts=tangent_layouts(traced),
            backward_for=backwards,
            unreached=paths.unreached,
            parts=backwards.parts,
            again=again,
        )
        caps = current_caps()
        if caps is None or backwards.parts or not self.options.ddp_stages or self.options.validates:
            return pair()
        stages = backwards.stages(caps, arguments)
        return StagedPair(**pair.keywords, stages=stages) if stages else pair()

    def _compile_graph(
        self, gm: fx.GraphModule, traced: Traced, by: CompileGraph | None = None
    ) -> Callable[..., Tensors]:
        if self.options.verify:
            verify(gm, functional=True, after="partition")
        examples = [tensor_of(node) for node in placeholders(gm.graph)]
        return (by or self.compile_graph)(with_size_inputs(gm, traced.sizes.symbols), examples)


def _is_traced(gm: fx.GraphModule, gate: Gate) -> bool:
    """Return whether nobody has switched off that a captured graph is traced."""
    origin = next((origin for node in gm.graph.nodes if (origin := origin_of(node)) is not None), None)
    place = origin.place() if origin is not None else ""
    return gate.allows("autograd", f"traced {gate.graph}", rule="autograd", place=place)


_CORRECT = "correct the operator's shape rule (torch.library.register_fake), or report it where it is torch's"
_WATCHED = "an input with hooks gets a gradient from some results only"
_WITHOUT_HOOKS = "compute the results that it belongs to in a compiled function of their own"
_APART = "clone one of them before the call to have it compiled"


@dataclass(slots=True, eq=False)
class _Backwards:
    """Compiled backwards by pattern of existing tangents, each made when first needed."""

    owner: CompiledCall
    program: JointProgram
    traced: Traced
    cut: Partition
    validation: FormValidation | None
    parts: tuple[ResultPart, ...] = field(init=False)
    made: dict[Pattern, list[tuple[Fits | None, CompiledBackward]]] = field(default_factory=dict)
    folder: DebugFolder | None = field(default_factory=open_folder)
    lock: ForkedLock = field(default_factory=ForkedLock)

    def __post_init__(self) -> None:
        groups = self.traced.independent
        at_once = len(groups) < 2 and all(spends for _, spends in groups)
        self.parts = () if at_once else parts_of(self.cut.backward.graph, len(self.cut.kept), groups)

    def __call__(self, pattern: Pattern, sizes: Sizes) -> CompiledBackward:
        """Return the backward for the tangents that exist and for these dynamic sizes."""
        forms = self.made.setdefault(pattern, [])
        for fits, backward in forms:
            if fits is None or fits(*sizes):
                return backward
        with self.lock:
            for fits, backward in forms:  # another thread may have been faster
                if fits is None or fits(*sizes):
                    return backward
            with _undisturbed(), later_part(self.folder, "backward"):
                forms.append(self._make(pattern, sizes))
            return forms[-1][1]

    def _make(self, pattern: Pattern, sizes: Sizes) -> tuple[Fits | None, CompiledBackward]:
        traced, fits = self.traced, None  # the forward was asked already whether these sizes fit
        if all(pattern):
            graph = self.cut.backward
            reads = tuple(range(len(self.cut.kept)))
        else:
            traced = self._trace_again(pattern, sizes)
            fits = traced.sizes.condition()
            joint = self.owner._simplified(traced.joint, "joint with fewer tangents")
            graph, reads = self._of_fewer_tangents(joint, pattern)
            stages = FormStages(self.program, traced, joint, self.cut, backward=(graph, reads))
            if self.validation is not None and self.validation.backward_departs(stages, pattern):
                parts = zip(traced.gradients_of, outputs(graph.graph), strict=True)
                return None, self._of_all_results(pattern, sizes, {place for place, part in parts if part is not None})
        gradients = outputs(graph.graph)
        present = [i for i, part in enumerate(gradients) if part is not None]
        _keep_outputs(graph, present)
        call = self._callable(graph, traced)
        return fits, CompiledBackward(call, reads, tuple(traced.gradients_of[i] for i in present))

    def stages(self, caps: BucketCaps, arguments: Sequence[object]) -> tuple[CompiledStage, ...]:
        """Return the whole backward in stages that end where a bucket is full; none where one would do it all."""
        graph, traced = self.cut.backward, self.traced
        cuts = backward_stages(graph, len(self.cut.kept), expected_buckets(traced, graph, caps, arguments))
        owned = {traced.gradients_of[place] for cut in cuts for place in cut.gradients}
        others = [number for number in range(len(traced.signature.inputs)) if number not in owned]
        stages = []
        for cut in cuts:
            targets = tuple(traced.gradients_of[place] for place in cut.gradients)
            stages.append(CompiledStage(cut, self._later(cut.graph), targets, (*targets, *others)))
            others = []
            if is_recording():
                name = f"backward stage {len(stages)} of {len(cuts)}"
                record(Artifact("autograd", name, "python", graph_text(cut.graph).text))
        return tuple(stages)

    def _later(self, graph: fx.GraphModule) -> Callable[..., Tensors]:
        """Return a stage that is compiled when it first runs."""
        made: list[Callable[..., Tensors]] = []

        def call(*values: Any) -> Tensors:
            if not made:
                with self.lock, _undisturbed(), later_part(self.folder, "backward"):
                    made.append(self._callable(graph, self.traced))
            return made[0](*values)

        return call

    def _callable(self, graph: fx.GraphModule, traced: Traced) -> Callable[..., Tensors]:
        """Return a part of the backward, compiled; it runs operator by operator where that fails."""
        try:
            call = self.owner._compile_graph(graph, traced, self.owner.halves.compile_backward)
        except CallersFailure as failure:
            raise failure.error from None  # `backward()` is the caller's own call
        except Exception as error:  # the forward ran already: there is no eager backward to go back to
            if self.owner.options.strict:
                raise
            inputs = [tensor_of(node) for node in placeholders(graph.graph)]
            report_graph_failure("backward", graph, inputs, error, "inductor", self.owner.options)
            record(FellBack("backward graph", f"{type(error).__name__}: {error}"))
            call = run_op_by_op(with_size_inputs(graph, traced.sizes.symbols), ())
        return going_on(call, _op_by_op(graph, traced))

    def _of_fewer_tangents(self, joint: JointGraph, pattern: Pattern) -> tuple[fx.GraphModule, tuple[int, ...]]:
        """Return the backward graph for the tangents that exist, and the kept values that it reads."""
        known = {stamp_of(node): node for node in joint.graph.graph.nodes if node.op != "output"}
        every = range(len(self.cut.kept))
        for held in (kept_for(self.parts, pattern, len(every)), every):
            indexed = [(index, known[self.cut.stamps[index]]) for index in held if self.cut.stamps[index] in known]
            graph = backward_graph(joint, [node for _, node in indexed])
            given = placeholders(graph.graph)[: len(indexed)]
            indexed = [pair for pair, node in zip(indexed, given, strict=True) if node.users]
            graph = backward_graph(joint, [node for _, node in indexed])
            # What is the same for every value of a tangent reads kept values too, and belongs to no part.
            if len(placeholders(graph.graph)) == len(indexed) + sum(pattern):
                break
        return graph, tuple(index for index, _ in indexed)

    def _of_all_results(self, pattern: Pattern, sizes: Sizes, wanted: Container[int]) -> CompiledBackward:
        """Return the backward of all results, which was compared with the program's, with zeros for absent tangents.

        wanted: the inputs that get a gradient.  The forward ran before, so the program's own backward cannot be had.
        """
        whole = self._make((True,) * len(pattern), sizes)[1]
        nodes = placeholders(self.traced.joint.graph.graph)[self.traced.joint.inputs :]
        examples, layouts = [tensor_of(node) for node in nodes], tangent_layouts(self.traced)
        places = [place for place, target in enumerate(whole.targets) if target in wanted]

        def call(*values: Any) -> Tensors:
            kept, rest = values[: len(whole.reads)], values[len(whole.reads) :]
            given, symbols = iter(rest[: sum(pattern)]), rest[sum(pattern) :]
            tangents = [
                next(given) if exists else torch.empty_strided(*layout, dtype=like.dtype, device=like.device).zero_()
                for exists, layout, like in zip(pattern, layouts(symbols), examples, strict=True)
            ]
            results = whole.call(*kept, *tangents, *symbols)
            return tuple(results[place] for place in places)

        return CompiledBackward(call, whole.reads, tuple(whole.targets[place] for place in places))

    def _trace_again(self, pattern: Pattern, sizes: Sizes) -> Traced:
        chosen = [index for index, exists in zip(self.traced.joint.tangents, pattern, strict=True) if exists]
        with stage("joint"):
            traced = trace_call(replace(self.program, sizes=sizes), chosen)
        if traced.forward_targets != self.traced.forward_targets:
            raise InternalError("two traces of one program differ", hint="a custom autograd.Function depends on state")
        return traced


def _op_by_op(gm: fx.GraphModule, traced: Traced) -> Callable[..., Tensors]:
    """Return a graph that nobody may ever run, made ready when somebody does."""
    symbols = traced.sizes.symbols
    return lambda *values: cast("Tensors", interpret(with_size_inputs(gm, symbols), values))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Compile without the caller's saved-tensor hooks, and without Python's cycle collector.

    A compilation makes a million objects that all stay; the collector makes it a third slower.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        with hidden_tensor_hooks():
            yield
    finally:
        if before:
            gc.enable()


def _keep_outputs(gm: fx.GraphModule, present: Sequence[int]) -> None:
    """Let a graph give only the outputs at these positions."""
    results = gm.graph.output_node().args[0]
    assert isinstance(results, tuple | list)
    gm.graph.output_node().args = (tuple(results[index] for index in present),)
    gm.recompile()


def _demand_written_apart(traced: Traced, arguments: Sequence[object]) -> None:
    signature = traced.signature
    written = [signature.inputs[fact.input] for fact in signature.writes]
    if written and _shares_memory(arguments, signature.inputs, written):
        raise Unsupported("a written input shares memory with another input", hint=_APART)


def _shares_memory(arguments: Sequence[object], inputs: Sequence[int], written: Sequence[int]) -> bool:
    """Return whether an input that is written overlaps another input."""
    spans = [(position, *_span(arguments[position])) for position in inputs]
    for here, start, end in spans:
        if here not in written:
            continue
        for other, other_start, other_end in spans:
            if other != here and start < other_end and other_start < end:
                return True
    return False


def _span(value: object) -> tuple[int, int]:
    """Return the addresses from the first to behind the last byte of a tensor's elements."""
    assert isinstance(value, torch.Tensor)
    start = value.data_ptr()
    if value.numel() == 0:
        return start, start
    last = sum(step * (size - 1) for step, size in zip(value.stride(), value.shape, strict=True))
    return start, start + (int(last) + 1) * value.element_size()
