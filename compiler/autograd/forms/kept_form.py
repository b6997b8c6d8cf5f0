"""A form that comes from disk: nothing is traced, cut, lowered or scheduled for it, nor is what does that imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from ...base.dense_order import dense_order
from ...base.locks import ForkedLock
from ...graph.effects.undo import HOOKED, READS_LATER
from ...graph.promises import going_on
from ...stored.plain_data import NotPlain, Plain, plain_value, value_of_plain
from ..call_signature import CallSignature
from ..call_wrappers import run_plain, without_base
from ..dynamic_arguments import Fits, formula
from ..function import CompiledBackward, CompiledPair, Pattern
from ..histories.captured_again import Differentiable, captured_again
from ..histories.history_reach import GradientPaths, InnerResult, PartialInputs
from ..joint_program import JointProgram
from ..tangent_layouts import layouts_at
from .form_parts import (
    FormContext,
    FormParts,
    Run,
    Sizes,
    Tensors,
    demand_history_allowed,
    demand_written_apart,
)
from .form_place import FormPlace
from .gradient_form import GradientForm, KeptBackward, backward_key


@dataclass(frozen=True, slots=True)
class KeptForm:
    """A form on disk, without its code and its constants.

    condition: Python text over names, the dynamic sizes in order, that says for which it is right; empty for all.
    unreached, partial, inner: see GradientPaths.  gradient: None where nothing has a gradient.
    """

    signature: CallSignature
    names: tuple[str, ...]
    condition: str
    unreached: frozenset[int]
    partial: tuple[PartialInputs, ...]
    inner: tuple[InnerResult, ...]
    gradient: GradientForm | None


def kept_form(
    context: FormContext, program: JointProgram, arguments: Sequence[object], place: FormPlace
) -> FormParts | None:
    """Return the form that is kept of a program, None where it has to be made; raises as making it would."""
    entry = place.find()
    if entry is None:
        return None
    form_data, constants_data, code = entry
    form: KeptForm = value_of_plain(form_data)
    fits = formula(form.condition, form.names) if form.condition else None
    if fits is not None and not fits(*program.sizes):
        return None
    demand_written_apart(form.signature, arguments)
    demand_history_allowed(form.signature)
    constants = constants_of_plain(constants_data)
    forward = place.load_part(code).call
    paths = GradientPaths(form.unreached, form.partial, form.inner, bool(context.gm.meta.get(HOOKED)))
    gradient = form.gradient
    run: Run
    if gradient is None:
        run = plain_run(forward, constants, form.signature)
    else:
        what = Differentiable(form.signature, gradient.tangents, constants)
        run = CompiledPair(
            signature=form.signature,
            forward=forward,
            kept=gradient.kept,
            constants=constants,
            tangents=gradient.tangents,
            layouts=layouts_at(gradient.layouts, form.names),
            backward_for=KeptBackwards(context, program, gradient, place),
            paths=paths,
            parts=gradient.parts,
            again=captured_again(program, what, arguments, paths.unreached),
            reads=context.gm.meta.get(READS_LATER, ()),
        )
    return FormParts(form.signature, form.names, run, fits)


def plain_run(forward: Callable[..., Tensors], constants: tuple[torch.Tensor, ...], signature: CallSignature) -> Run:
    """Return a compiled graph without gradients as what runs a form."""
    views = signature.views

    def run(tensors: Sequence[object], sizes: Sizes) -> Tensors:
        values = run_plain(forward, (*tensors, *constants, *sizes))
        return [value if place in views else without_base(value) for place, value in enumerate(values)]

    return run


@dataclass(slots=True, eq=False)
class KeptBackwards:
    """The backwards of a form from disk; what is not there is traced, as for a form that was made here."""

    context: FormContext
    program: JointProgram
    known: GradientForm
    place: FormPlace
    found: dict[Pattern, list[tuple[Fits | None, CompiledBackward]]] = field(default_factory=dict)
    traced: Callable[[Pattern, Sizes], CompiledBackward] | None = None
    lock: ForkedLock = field(default_factory=ForkedLock)

    def __call__(self, pattern: Pattern, sizes: Sizes) -> CompiledBackward:
        """Return the backward for the tangents that exist and for these dynamic sizes."""
        for fits, backward in self.found.get(pattern, ()):
            if fits is None or fits(*sizes):
                return backward
        with self.lock:
            kept = self._kept(pattern, sizes) if self.traced is None else None
            if kept is not None:
                self.found.setdefault(pattern, []).append(kept)
                return kept[1]
            if self.traced is None:
                self.traced = _tracing(self)
        return self.traced(pattern, sizes)

    def _kept(self, pattern: Pattern, sizes: Sizes) -> tuple[Fits | None, CompiledBackward] | None:
        try:
            entry = self.place.find(*backward_key(pattern, sizes))
            if entry is None:
                return None
            kept: KeptBackward = value_of_plain(entry[0])
            fits = formula(kept.condition, kept.names) if kept.condition else None
            if fits is not None and not fits(*sizes):
                return None
            part = self.place.load_part(entry[1])
        except Exception:  # whatever is wrong with an entry, it is not there
            return None
        return fits, CompiledBackward(going_on(part.call, part.op_by_op), kept.reads, kept.targets)


def _tracing(kept: KeptBackwards) -> Callable[[Pattern, Sizes], CompiledBackward]:
    from .backwards import Backwards

    program = replace(kept.program, decompositions=kept.context.decompositions())
    return Backwards(kept.context, program, kept.known, place=kept.place)


# -- tensors that a graph holds ------------------------------------------------------------------------------------

_MOST_BYTES = 1 << 16  # a graph that holds more than this of numbers is not kept


def plain_constants(constants: Sequence[torch.Tensor]) -> Plain:
    """Return tensors that tracing made, as `torch.tensor(...)` in a program does, as plain data; raises NotPlain."""
    return tuple(_plain_constant(constant) for constant in constants)


def _plain_constant(constant: torch.Tensor) -> Plain:
    if type(constant) is not torch.Tensor or constant.layout is not torch.strided or constant.device.type != "cpu":
        raise NotPlain(f"a tensor of the graph's own, a {type(constant).__name__} on {constant.device}")
    plain = not (constant.requires_grad or constant.is_conj() or constant.is_neg() or constant.is_quantized)
    if not plain or dense_order(constant.shape, constant.stride()) is None:
        raise NotPlain("a tensor of the graph's own that is more than its elements")
    if constant.numel() * constant.element_size() > _MOST_BYTES:
        raise NotPlain("a large tensor of the graph's own")
    layout = (tuple(constant.shape), constant.stride(), constant.dtype)
    content = constant.contiguous().reshape(-1).view(torch.uint8)
    return plain_value(layout), bytes(content.tolist())


def constants_of_plain(form: Plain) -> tuple[torch.Tensor, ...]:
    """Return the tensors of their plain form."""
    return tuple(_constant(value_of_plain(layout), content) for layout, content in form)


def _constant(layout: tuple[tuple[int, ...], tuple[int, ...], torch.dtype], content: bytes) -> torch.Tensor:
    shape, stride, dtype = layout
    constant = torch.empty_strided(shape, stride, dtype=dtype, device="cpu")
    if content:
        constant.copy_(torch.frombuffer(bytearray(content), dtype=dtype).reshape(shape))
    return constant
