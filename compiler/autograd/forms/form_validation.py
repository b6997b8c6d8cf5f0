"""A compiled form under `verify="run"`: held to the captured graph at its first call, and for further backwards."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import torch

from ...comparison.first_call import FirstCall, StageDeparture
from ...comparison.private_inputs import private_inputs
from ..call_signature import CallSignature, OutputKind
from ..function import Pattern
from ..joint_program import JointProgram
from .form_levels import FormStages, Sizes, form_levels


@dataclass(slots=True, eq=False)
class FormValidation:
    """Compares the stages of one form.

    report, strict: as for `FirstCall`.  arguments: copies of the first call's, kept where backwards for fewer tangents
    may follow: these are traced, and held to the captured graph, when one first runs.
    """

    stages: FormStages
    report: Callable[[StageDeparture, Sequence[object]], None]
    strict: bool
    first: FirstCall = field(init=False)
    arguments: tuple[object, ...] | None = None
    sizes: Sizes = ()  # the dynamic ones of the first call

    def __post_init__(self) -> None:
        self.first = self._comparison("captured graph", self.stages)

    def departs(self, arguments: Sequence[object], sizes: Sizes) -> bool:
        """Return whether a stage departs; compared at the first call, forward and the backward of all results."""
        if self.first.is_settled:
            return self.first.departed
        self.sizes = sizes
        if len(self.stages.traced.joint.tangents) > 1:
            self.arguments = private_inputs(arguments).arguments
        return self.first.departs(arguments)

    def backward_departs(self, stages: FormStages, pattern: Pattern) -> bool:
        """Return whether a stage of a backward for fewer tangents departs; from then on calls run as captured."""
        ends = _ends(stages.traced.signature, self.stages.traced.joint.tangents, pattern)
        if ends is None or self.arguments is None:
            return False
        with _modes_of(self.stages.program):
            departs = self._comparison("backward of some results", stages).departs(self.arguments, ends)
        self.first.departed = self.first.departed or departs
        return departs

    def _comparison(self, part: str, stages: FormStages) -> FirstCall:
        return FirstCall(part, lambda: form_levels(replace(stages, sizes=self.sizes)), self.report, self.strict)


def _modes_of(program: JointProgram) -> ExitStack:
    """Return a context with the grad mode and autocast of a program's call: a backward runs without."""
    stack = ExitStack()
    stack.enter_context(torch.set_grad_enabled(program.grad_enabled))
    for device, dtype in program.autocast:
        stack.enter_context(torch.autocast(device, dtype=dtype))
    return stack


def _ends(signature: CallSignature, tangents: Sequence[int], pattern: Pattern) -> tuple[int, ...] | None:
    """Return which differentiable outputs, counted alone, get a gradient; None where outputs are not plain values."""
    kinds = {fact.kind for fact in signature.outputs}
    views = any(fact.steps for fact in signature.outputs)
    if views or OutputKind.INPUT in kinds or any(fact.tracked for fact in signature.writes):
        return None
    known = dict(zip(tangents, pattern, strict=True))
    facts = [fact for fact in signature.outputs if fact.kind is OutputKind.RETURNED and fact.requires_grad]
    return tuple(place for place, fact in enumerate(facts) if known.get(fact.index))
