"""compile_with_autograd: a torch-level graph -> a callable of exactly its meaning, computed by compiled ATen graphs.

The callable is specialised to facts that traced code depends on and that nobody upstream promises: which inputs
require grad or are leaves, which are one object, which share memory with one that is written, grad mode, autocast.
For other facts it specialises again. What cannot be compiled exactly runs `gm` as it is, with a recorded reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from sys import is_finalizing

import torch
from torch import fx

from ..base.bisecting.applications import Gate, gate_for
from ..base.dense_order import dense_order
from ..base.errors import CallersFailure, InternalError, PlumblineError, Unsupported
from ..base.events import SHAPE_RULE, FellBack, GraphStored, RanEagerly, record, stage
from ..base.locks import ForkedLock
from ..base.noted_warnings import noted_warnings
from ..base.options import Options
from ..base.torch_facts import FakeTensor, OpOverload, forward_ad_is_active, functorch_is_active
from ..graph.effects.undo import STEPS_WANTED, WARNED, effects_of, undoing
from ..graph.graph_failure import fails_by_itself, report_graph_failure
from ..graph.graph_interpreter import interpret
from ..graph.node_values import origin_of
from ..graph.promises import MetadataDeparture
from ..graph.subgraphs.autocast_at import autocast_state
from ..graph.subgraphs.subgraph_operator import BodyCompiler
from ..graph.tracer import Decomposition
from .call_wrappers import finisher, run_before_hooks_fail
from .dynamic_arguments import NOTHING_DYNAMIC, DynamicArguments, Fits, dynamic_arguments
from .forms.form_parts import (
    APART,
    CompileGraph,
    FormContext,
    FormParts,
    Halves,
    Sizes,
    shares_written_memory,
    undisturbed,
)
from .forms.form_place import FormPlace, LoadPart, place_of
from .forms.kept_form import kept_form
from .joint_program import JointProgram
from .stages.gradient_buckets import BucketCaps, current_caps

Call = Callable[[Sequence[object], Sizes], tuple[object, ...]]
Form = tuple[Fits | None, Call]  # whether it may be used for these dynamic sizes (None: for all), and what to run


def _no_decompositions() -> Mapping[OpOverload, Decomposition]:
    return {}


def compile_with_autograd(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    compile_graph: CompileGraph,
    options: Options,
    *,
    decompositions: Callable[[], Mapping[OpOverload, Decomposition]] = _no_decompositions,
    recompute: bool = True,
    guarded: bool = False,
    load_part: LoadPart | None = None,
    halves: Halves | None = None,
) -> "CompiledCall":
    """Return a callable with the meaning of `gm`: values, gradients, mutations, aliases, strides, random draws.

    gm: torch-level, every tensor a placeholder, output a tuple. example_inputs: tensors and numbers as they will
    come; sizes that are symbolic in the example values of gm are traced as symbols, others fixed.
    compile_graph: compiles one functional ATen graph whose placeholders are tensors, then dynamic sizes; called for
    the forward at once, for a backward when it first runs. decompositions: gives what takes calls apart. recompute:
    whether backward may compute cheap values again. guarded: the caller promises at every call what `facts_of_call`
    would tell of the example inputs, so nobody looks again. load_part: makes a compiled graph of what is kept on disk;
    None: nothing is looked for or kept there. halves: what the caller does to the two halves instead.
    """
    dynamic = dynamic_arguments(gm)
    compiled = CompiledCall(
        gm, compile_graph, options, decompositions, recompute, load_part, guarded, dynamic, halves or Halves()
    )
    compiled.specialise(tuple(example_inputs))
    return compiled


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
    decompositions: Callable[[], Mapping[OpOverload, Decomposition]]
    recompute: bool
    load_part: LoadPart | None = None
    guarded: bool = False
    dynamic: DynamicArguments = NOTHING_DYNAMIC
    halves: Halves = field(default_factory=Halves)
    fallback_reason: str | None = None
    # the forms for what the caller promised, by what it does not: who sends the gradients
    _promised: dict[BucketCaps | None, list[Form]] = field(default_factory=dict)
    _calls: dict[Assumptions, list[Form]] = field(default_factory=dict)
    _uncompiled: Callable[..., tuple[object, ...]] | None = None
    _bodies: dict[int, "CompiledCall"] = field(default_factory=dict)
    _compilers: list[BodyCompiler] = field(default_factory=list)  # kept alive: graphs name what they have made
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
                with undisturbed():
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
            with undisturbed():
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
        parts = self._parts(arguments, dynamic, gate)
        signature, run = parts.signature, parts.run
        finish, positions = finisher(signature, list(parts.names)), signature.inputs
        departed = False

        def call(arguments: Sequence[object], sizes: Sizes) -> tuple[object, ...]:
            nonlocal departed
            if departed:
                return interpret(self.gm, arguments)
            sizes = sizes if dynamic.labels else ()
            if signature.writes and shares_written_memory(signature, arguments):
                record(RanEagerly("captured graph", "autograd", "a written input shares memory", APART, None))
                return self._as_it_is(arguments)
            if parts.departs is not None and parts.departs(arguments, sizes):
                return self._as_it_is(arguments)
            inputs = [arguments[position] for position in positions]
            try:
                if signature.writes:
                    return run_before_hooks_fail(
                        lambda: run(inputs, sizes), lambda values: finish(arguments, values, sizes)
                    )
                values = run(inputs, sizes)
            except MetadataDeparture as departure:
                departed = True
                record(RanEagerly("captured graph", SHAPE_RULE, str(departure), _CORRECT, None))
                return self._as_it_is(arguments)
            return finish(arguments, values, sizes)

        return self._condition(parts, arguments, dynamic), call

    def _parts(self, arguments: tuple[object, ...], dynamic: DynamicArguments, gate: Gate | None) -> FormParts:
        """Return the form of the graph for arguments like these, from disk where it is there."""
        if self.gm.meta.get(STEPS_WANTED):
            raise Unsupported("the program takes `grad_fn` of a tensor away", hint="expected: the graph runs eagerly")
        metadata, sizes = JointProgram.metadata(arguments, dynamic), dynamic.read(arguments)
        state = (torch.is_grad_enabled(), autocast_state())
        bodies = BodyCompiler(self._body)
        self._compilers.append(bodies)
        program = JointProgram(self.gm, metadata, *state, dynamic=dynamic, sizes=sizes, gate=gate, bodies=bodies)
        rules = self.decompositions
        context = FormContext(
            self.gm, self.compile_graph, self.options, rules, self.recompute, self._refused, self.halves
        )
        facts = facts_of_call(arguments, dynamic)
        place = place_of(program, facts, self.options, self.recompute, self.load_part)
        if place is not None:
            try:
                with stage("graph cache"):
                    kept = kept_form(context, program, arguments, place)
            except Unsupported:
                raise
            except Exception as error:  # whatever is wrong with an entry, it is not there
                record(GraphStored("graph", "not found", f"{type(error).__name__}: {error}"))
                kept = None
            if kept is not None:
                return kept
        return _traced_form(context, program, arguments, place)

    def _body(self, gm: fx.GraphModule) -> "CompiledCall":
        """Return what runs the body of a call with subgraphs: compiled as this graph is, when it is first called."""
        if id(gm) not in self._bodies:
            how = (self.compile_graph, self.options, self.decompositions, self.recompute)
            self._bodies[id(gm)] = CompiledCall(gm, *how, dynamic=dynamic_arguments(gm))
        return self._bodies[id(gm)]

    def _refused(self, why: str) -> None:
        self.fallback_reason = why

    def _condition(self, parts: FormParts, arguments: Sequence[object], dynamic: DynamicArguments) -> Fits | None:
        """Return which dynamic sizes a compiled call is right for; asked last, for compiling may assume more."""
        if dynamic.labels or not self.dynamic.labels:
            return parts.fits
        values = self.dynamic.read(arguments)
        return lambda *sizes: sizes == values


def _traced_form(
    context: FormContext, program: JointProgram, arguments: Sequence[object], place: FormPlace | None
) -> FormParts:
    from .forms.traced_form import traced_form

    complete = replace(program, decompositions=context.decompositions(), keeps_recorded=context.options.validates)
    return traced_form(context, complete, arguments, place)


def _is_traced(gm: fx.GraphModule, gate: Gate) -> bool:
    """Return whether nobody has switched off that a captured graph is traced."""
    origin = next((origin for node in gm.graph.nodes if (origin := origin_of(node)) is not None), None)
    place = origin.place() if origin is not None else ""
    return gate.allows("autograd", f"traced {gate.graph}", rule="autograd", place=place)


_CORRECT = "correct the operator's shape rule (torch.library.register_fake), or report it where it is torch's"
