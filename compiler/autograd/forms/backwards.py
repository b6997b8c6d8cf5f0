"""The backwards of a form: one for each pattern of results that have a gradient, compiled when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import torch
from torch import fx

from ...base.debug_folder import DebugFolder, later_part, open_folder
from ...base.errors import CallersFailure, InternalError
from ...base.events import Artifact, FellBack, is_recording, record, stage
from ...base.locks import ForkedLock
from ...base.options import Options
from ...base.torch_facts import quiet_fake_runs
from ...graph.checks import verify
from ...graph.dynamic_sizes import with_size_inputs
from ...graph.graph_failure import report_graph_failure
from ...graph.graph_interpreter import interpret, run_op_by_op
from ...graph.graph_printing import graph_text
from ...graph.node_values import outputs, placeholders, tensor_of
from ...graph.passes import SIMPLIFY, call_key, has_no_effect, run_passes
from ...graph.promises import going_on
from ...stored.graph_store import description_of
from ...stored.plain_data import Plain, plain_value
from ..dynamic_arguments import Fits, formula
from ..function import CompiledBackward, Pattern
from ..histories.independent_results import kept_for
from ..joint import Traced, trace_call
from ..joint_program import JointProgram
from ..partition import JointGraph, Partition, backward_graph, stamp_of
from ..stages.arrival_order import order_of_ends
from ..stages.backward_stages import backward_stages
from ..stages.gradient_buckets import BucketCaps, expected_buckets
from ..stages.staged_function import CompiledStage
from ..tangent_layouts import layouts_at, layouts_of
from .compact_values import COMPACT
from .fewer_tangents import without_tangents
from .form_levels import FormStages
from .form_parts import CompileGraph, FormContext, Sizes, Tensors, undisturbed
from .form_place import FormPlace, with_condition
from .form_validation import FormValidation
from .gradient_form import GradientForm, KeptBackward, backward_key, target_names


@dataclass(frozen=True, slots=True, eq=False)
class TracedPair:
    """A trace with gradients, and its cut."""

    traced: Traced
    cut: Partition


def simplified(joint: JointGraph, name: str, options: Options, *, recompute: bool) -> JointGraph:
    """Return a joint graph without what is superfluous in it; name: of what goes on record.

    recompute: backward may compute again what is cheap, so that what is handed to it may be smaller than what it reads.
    """
    if options.verify:
        verify(joint.graph, functional=True, costly=True, after="functionalize")
    passes = (*SIMPLIFY, *COMPACT) if recompute and joint.tangents else SIMPLIFY
    graph = run_passes(joint.graph, passes, options, stage="joint")
    if is_recording():
        record(Artifact("autograd", name, "python", graph_text(graph).text))
    return JointGraph(graph, joint.inputs, joint.returned, joint.tangents, joint.escaping, joint.written)


def compiled_graph(
    gm: fx.GraphModule, traced: Traced, context: FormContext, by: CompileGraph | None = None
) -> Callable[..., Tensors]:
    """Return what runs one functional graph of a trace: of its tensors, then the dynamic sizes.

    by: compiles it, in the place of what compiles all graphs.
    """
    if context.options.verify:
        verify(gm, functional=True, after="partition")
    examples = [tensor_of(node) for node in placeholders(gm.graph)]
    return (by or context.compile_graph)(with_size_inputs(gm, traced.sizes.symbols), examples)


@dataclass(slots=True, eq=False)
class Backwards:
    """Compiled backwards by pattern of existing tangents, each made when first needed.

    known: what every trace of the program has in common with the one that the forward was made of.  form: that trace
    and its cut; None where the forward comes from disk.  validation: compares the stages of a backward.  place: where
    backwards are kept.
    """

    context: FormContext
    program: JointProgram
    known: GradientForm
    form: TracedPair | None = None
    validation: FormValidation | None = None
    place: FormPlace | None = None
    made: dict[Pattern, list[tuple[Fits | None, CompiledBackward]]] = field(default_factory=dict)
    folder: DebugFolder | None = field(default_factory=open_folder)
    lock: ForkedLock = field(default_factory=ForkedLock)

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
            with undisturbed(), later_part(self.folder, "backward"), quiet_fake_runs():
                forms.append(self._make(pattern, sizes))
            return forms[-1][1]

    def _make(self, pattern: Pattern, sizes: Sizes) -> tuple[Fits | None, CompiledBackward]:
        condition = ""  # the forward was asked already whether these sizes fit
        if all(pattern) and self.form is not None:
            traced, graph = self.form.traced, self.form.cut.backward
            reads = tuple(range(len(self.known.kept)))
        else:
            traced, condition = self._with_fewer_tangents(pattern, sizes)
            recompute = self.context.recompute
            joint = simplified(traced.joint, "joint with fewer tangents", self.context.options, recompute=recompute)
            graph, reads = self._of_fewer_tangents(joint, pattern)
            if self._departs(traced, joint, (graph, reads), pattern):
                parts = zip(traced.gradients_of, outputs(graph.graph), strict=True)
                return None, self._of_all_results(pattern, sizes, {place for place, part in parts if part is not None})
        gradients = outputs(graph.graph)
        present = [i for i, part in enumerate(gradients) if part is not None]
        _keep_outputs(graph, present)
        targets = tuple(traced.gradients_of[i] for i in present)
        names = list(traced.sizes.symbols)
        keep = partial(self._keep, pattern, sizes, reads, targets, condition, names)
        call = self._callable(graph, traced, keep)
        return formula(condition, names) if condition else None, CompiledBackward(call, reads, targets)

    def _keep(
        self,
        pattern: Pattern,
        sizes: Sizes,
        reads: tuple[int, ...],
        targets: tuple[int, ...],
        condition: str,
        names: Sequence[str],
        compiled: Callable[..., Tensors],
    ) -> None:
        if self.place is None:
            return

        def content() -> Plain:
            part = description_of(compiled)
            kept = KeptBackward(reads, targets, with_condition(part, condition), tuple(names))
            return plain_value(kept), part.content

        self.place.keep(content, *backward_key(pattern, sizes))

    def _departs(
        self, traced: Traced, joint: JointGraph, backward: tuple[fx.GraphModule, tuple[int, ...]], pattern: Pattern
    ) -> bool:
        if self.validation is None or self.form is None:
            return False
        stages = FormStages(self.program, traced, joint, self.form.cut, backward=backward)
        return self.validation.backward_departs(stages, pattern)

    def stages(self, caps: BucketCaps, arguments: Sequence[object]) -> tuple[CompiledStage, ...]:
        """Return the whole backward in stages that end where a bucket is full; none where one would do it all."""
        assert self.form is not None
        graph, traced = self.form.cut.backward, self.form.traced
        cuts = backward_stages(graph, len(self.known.kept), expected_buckets(traced, graph, caps, arguments))
        owned = {traced.gradients_of[place] for cut in cuts for place in cut.gradients}
        others = [number for number in range(len(traced.signature.inputs)) if number not in owned]
        leaves = self._leaves(arguments)
        stages = []
        for cut in cuts:
            targets = tuple(traced.gradients_of[place] for place in cut.gradients)
            ends = order_of_ends(targets, traced.arrival, leaves, before_another=cut is not cuts[-1])
            stages.append(CompiledStage(cut, self._later(cut.graph, traced), targets, (*ends, *others)))
            others = []
            if is_recording():
                name = f"backward stage {len(stages)} of {len(cuts)}"
                record(Artifact("autograd", name, "python", graph_text(cut.graph).text))
        return tuple(stages)

    def order_of_inputs(self, arguments: Sequence[object]) -> tuple[int, ...]:
        """Return the order in which a step with all of the backward gets its inputs: gradients come as eager's."""
        assert self.form is not None
        traced = self.form.traced
        ends = order_of_ends(traced.gradients_of, traced.arrival, self._leaves(arguments), before_another=False)
        return (*ends, *(number for number in range(len(traced.signature.inputs)) if number not in ends))

    def _leaves(self, arguments: Sequence[object]) -> set[int]:
        assert self.form is not None
        values = [arguments[place] for place in self.form.traced.signature.inputs]
        return {n for n, value in enumerate(values) if isinstance(value, torch.Tensor) and value.is_leaf}

    def _later(self, graph: fx.GraphModule, traced: Traced) -> Callable[..., Tensors]:
        """Return a stage that is compiled when it first runs."""
        made: list[Callable[..., Tensors]] = []

        def call(*values: Any) -> Tensors:
            if not made:
                with self.lock, undisturbed(), later_part(self.folder, "backward"):
                    made.append(self._callable(graph, traced))
            return made[0](*values)

        return call

    def _callable(
        self, graph: fx.GraphModule, traced: Traced, keep: Callable[[Callable[..., Tensors]], None] | None = None
    ) -> Callable[..., Tensors]:
        """Return a part of the backward, compiled; it runs operator by operator where that fails.

        keep: told what has been compiled.
        """
        try:
            call = compiled_graph(graph, traced, self.context, self.context.halves.compile_backward)
            if keep is not None:
                keep(call)
        except CallersFailure as failure:
            raise failure.error from None  # `backward()` is the caller's own call
        except Exception as error:  # the forward ran already: there is no eager backward to go back to
            if self.context.options.strict:
                raise
            inputs = [tensor_of(node) for node in placeholders(graph.graph)]
            report_graph_failure("backward", graph, inputs, error, "inductor", self.context.options)
            record(FellBack("backward graph", f"{type(error).__name__}: {error}"))
            call = run_op_by_op(with_size_inputs(graph, traced.sizes.symbols), ())
        return going_on(call, _op_by_op(graph, traced))

    def _of_fewer_tangents(self, joint: JointGraph, pattern: Pattern) -> tuple[fx.GraphModule, tuple[int, ...]]:
        """Return the backward graph for the tangents that exist, and the kept values that it reads."""
        known = {stamp_of(node): node for node in joint.graph.graph.nodes if node.op != "output"}
        stamps = [stamp for (kind, _), stamp in zip(self.known.kept, self.known.stamps, strict=True) if kind == "extra"]
        _share(joint.graph.graph, {known[stamp] for stamp in stamps if stamp in known})
        every = range(len(self.known.kept))
        # Equal calls that the forward ran apart may be one here; last, for the caller may have written to a result.
        merged = {stamp: node for node in known.values() for stamp in node.meta.get("merged", ())} | known
        for held, nodes in ((kept_for(self.known.parts, pattern, len(every)), known), (every, known), (every, merged)):
            indices = {nodes[self.known.stamps[i]]: i for i in reversed(held) if self.known.stamps[i] in nodes}
            indexed = [(index, node) for node, index in reversed(indices.items())]
            graph = backward_graph(joint, [node for _, node in indexed])
            given = placeholders(graph.graph)[: len(indexed)]
            indexed = [pair for pair, node in zip(indexed, given, strict=True) if node.users]
            graph = backward_graph(joint, [node for _, node in indexed])
            # What is the same for every value of a tangent reads kept values too, and belongs to no part.
            if len(placeholders(graph.graph)) == len(indexed) + sum(pattern):
                break
        if len(placeholders(graph.graph)) > len(indexed) + sum(pattern):
            why = "it would read what the forward did not keep"
            raise InternalError("no backward for some of the results", why=why, hint="ask for the gradients of all")
        return graph, tuple(index for index, _ in indexed)

    def _of_all_results(self, pattern: Pattern, sizes: Sizes, wanted: Container[int]) -> CompiledBackward:
        """Return the backward of all results, which was compared with the program's, with zeros for absent tangents.

        wanted: the inputs that get a gradient.  The forward ran before, so the program's own backward cannot be had.
        """
        whole = self._make((True,) * len(pattern), sizes)[1]
        assert self.form is not None
        traced = self.form.traced
        nodes = placeholders(traced.joint.graph.graph)[traced.joint.inputs :]
        found = layouts_of(traced.joint.graph.graph, traced.joint.inputs)
        examples, layouts = [tensor_of(node) for node in nodes], layouts_at(found, list(traced.sizes.symbols))
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

    def _with_fewer_tangents(self, pattern: Pattern, sizes: Sizes) -> tuple[Traced, str]:
        """Return a trace for the tangents that exist, and what has to hold of the sizes besides the forward's own."""
        if self.form is not None and self.validation is None:
            asked = self.form.traced.sizes.condition_text()
            cut = without_tangents(self.form.traced, pattern)
            if cut is not None:
                now = cut.sizes.condition_text()
                return cut, now if now != asked else ""
        traced = self._trace_again(pattern, sizes)
        return traced, traced.sizes.condition_text()

    def _trace_again(self, pattern: Pattern, sizes: Sizes) -> Traced:
        chosen = [index for index, exists in zip(self.known.tangents, pattern, strict=True) if exists]
        with stage("joint"):
            traced = trace_call(replace(self.program, sizes=sizes), chosen)
        if target_names(traced.forward_targets) != self.known.targets:
            raise InternalError("two traces of one program differ", hint="a custom autograd.Function depends on state")
        return traced


def _share(graph: fx.Graph, kept: Container[fx.Node]) -> None:
    """Let a backward read kept values where it computes the same.

    kept: what the forward kept and the caller does not see: a result that the caller has may be written to before the
    backward.  In this trace it may look like a result, where the forward computed that one by itself.
    """
    seen: dict[object, fx.Node] = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or not has_no_effect(node):
            continue
        try:
            twin = seen.get(call_key(node))
            if node in kept:
                seen.setdefault(call_key(node), node)
        except TypeError:  # an argument that cannot be a key
            continue
        if twin is not None and node not in kept:
            node.replace_all_uses_with(twin, delete_user_cb=lambda user: user.op != "output")


def _op_by_op(gm: fx.GraphModule, traced: Traced) -> Callable[..., Tensors]:
    """Return a graph that nobody may ever run, made ready when somebody does."""
    symbols = traced.sizes.symbols
    return lambda *values: cast("Tensors", interpret(with_size_inputs(gm, symbols), values))


def _keep_outputs(gm: fx.GraphModule, present: Sequence[int]) -> None:
    """Let a graph give only the outputs at these positions."""
    results = gm.graph.output_node().args[0]
    assert isinstance(results, tuple | list)
    gm.graph.output_node().args = (tuple(results[index] for index in present),)
    gm.recompile()
