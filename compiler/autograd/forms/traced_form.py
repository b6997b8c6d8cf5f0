"""A form is made: the program is traced, cut in halves where it has gradients, and compiled; what can be is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from ...base.events import Artifact, FellBack, is_recording, record, stage
from ...comparison.first_call import StageDeparture
from ...graph.effects.undo import HOOKED, READS_LATER
from ...graph.graph_failure import report_graph_failure
from ...graph.graph_printing import graph_text
from ...stored.graph_store import description_of
from ...stored.plain_data import Plain, plain_value
from ..function import CompiledPair
from ..histories.captured_again import Differentiable, captured_again
from ..histories.history_reach import GradientPaths
from ..histories.independent_results import ResultPart, parts_of
from ..joint import Traced, trace_call
from ..joint_program import JointProgram
from ..partition import JointGraph, Partition, partition
from ..stages.gradient_buckets import current_caps
from ..stages.staged_function import StagedPair
from ..tangent_layouts import layouts_at, layouts_of
from .backwards import Backwards, TracedPair, compiled_graph, simplified
from .form_levels import FormStages
from .form_parts import FormContext, FormParts, Run, demand_history_allowed, demand_written_apart
from .form_place import FormPlace, with_condition
from .form_validation import FormValidation
from .gradient_form import GradientForm, target_names
from .kept_form import KeptForm, plain_constants, plain_run


def traced_form(
    context: FormContext, program: JointProgram, arguments: Sequence[object], place: FormPlace | None
) -> FormParts:
    """Return the form of a program for arguments like these; raises Unsupported and whatever tracing raises.

    place: where it is kept; None: nowhere.
    """
    with stage("joint"):
        traced = trace_call(program)
    demand_written_apart(traced.signature, arguments)
    joint = simplified(traced.joint, "joint", context.options, recompute=context.recompute)
    hooked = bool(context.gm.meta.get(HOOKED))
    paths = GradientPaths.of(traced.reach, len(traced.joint.tangents), traced.inner, hooked)
    demand_history_allowed(traced.signature)
    if traced.signature.is_differentiable:
        with stage("partition"):
            cut = _cut(context, program, joint)
        validation = _validation(context, program, traced, joint, cut)
        known = _gradient_form(traced, cut)
        backwards = Backwards(context, program, known, TracedPair(traced, cut), validation, place)
        run = _compile_pair(context, backwards, paths, arguments)
    else:
        validation = _validation(context, program, traced, joint, None)
        forward = compiled_graph(joint.graph, traced, context)
        _keep(place, traced, paths, None, forward)
        run = plain_run(forward, traced.constants, traced.signature)
    for label in traced.sizes.fixed():
        record(FellBack("dynamic sizes", f"the traced operations need {label} to be what it is in this call"))
    departs = validation.departs if validation is not None else None
    return FormParts(traced.signature, tuple(traced.sizes.symbols), run, traced.sizes.condition(), departs)


def _cut(context: FormContext, program: JointProgram, joint: JointGraph) -> Partition:
    if context.halves.cut is not None:
        cut: Partition = context.halves.cut(joint)
        return cut
    return partition(joint, recompute=context.recompute, budget=context.options.save_budget, gate=program.gate)


def _gradient_form(traced: Traced, cut: Partition) -> GradientForm:
    return GradientForm(
        traced.joint.tangents,
        layouts_of(traced.joint.graph.graph, traced.joint.inputs),
        cut.kept,
        cut.stamps,
        target_names(traced.forward_targets),
        _parts(traced, cut),
    )


def _parts(traced: Traced, cut: Partition) -> tuple[ResultPart, ...]:
    groups = traced.independent
    at_once = len(groups) < 2 and all(spends for _, spends in groups)
    return () if at_once else parts_of(cut.backward.graph, len(cut.kept), groups)


def _compile_pair(context: FormContext, backwards: Backwards, paths: GradientPaths, arguments: Sequence[object]) -> Run:
    assert backwards.form is not None
    traced, cut, known = backwards.form.traced, backwards.form.cut, backwards.known
    if is_recording():
        record(Artifact("autograd", "forward", "python", graph_text(cut.forward).text))
        record(Artifact("autograd", "backward", "python", graph_text(cut.backward).text))
    forward = compiled_graph(cut.forward, traced, context)
    _keep(backwards.place, traced, paths, known, forward)
    what = Differentiable(traced.signature, known.tangents, traced.constants)
    pair = partial(
        CompiledPair,
        signature=traced.signature,
        forward=forward,
        kept=known.kept,
        constants=traced.constants,
        tangents=known.tangents,
        layouts=layouts_at(known.layouts, list(traced.sizes.symbols)),
        backward_for=backwards,
        paths=paths,
        parts=known.parts,
        again=captured_again(backwards.program, what, arguments, paths.unreached),
        reads=context.gm.meta.get(READS_LATER, ()),
    )
    caps = current_caps()
    if caps is None:
        return pair()
    staged = not known.parts and context.options.ddp_stages and not context.options.validates
    if staged and (stages := backwards.stages(caps, arguments)):
        return StagedPair(**pair.keywords, stages=stages)
    return pair(order=backwards.order_of_inputs(arguments))


def _keep(
    place: FormPlace | None,
    traced: Traced,
    paths: GradientPaths,
    gradient: GradientForm | None,
    forward: Callable[..., Sequence[torch.Tensor]],
) -> None:
    if place is None:
        return

    def content() -> Plain:
        part = description_of(forward)
        condition = with_condition(part, traced.sizes.condition_text())
        names = tuple(traced.sizes.symbols)
        form = KeptForm(traced.signature, names, condition, paths.unreached, paths.partial, paths.inner, gradient)
        return plain_value(form), plain_constants(traced.constants), part.content

    place.keep(content)


def _validation(
    context: FormContext, program: JointProgram, traced: Traced, joint: JointGraph, cut: Partition | None
) -> FormValidation | None:
    """Return what holds a form to the captured graph; None where the options do not ask for it."""
    if not context.options.validates:
        return None

    def report(error: StageDeparture, arguments: Sequence[object]) -> None:
        context.refused(error.what)
        report_graph_failure(error.stage, context.gm, arguments, error, "aot_eager", context.options)

    return FormValidation(FormStages(program, traced, joint, cut), report, context.options.strict)
