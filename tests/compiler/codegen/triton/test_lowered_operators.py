"""Every operator that has a lowering, in every dtype: Triton's text is what runs, and it gives what C gives.

What the lowering of an operator refuses is listed in `support/refused_by_lowerings.toml`, each with the reason; the
list is exact, so a form that is lowered one day has to leave it.
"""

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

from plumbline.compiler.base.options import Options
from plumbline.compiler.base.torch_facts import OpOverload
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.loops.ir import Extern, LoopProgram, Ref
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.lowering.registry import LOWERINGS
from plumbline.compiler.native import compile_graph
from plumbline.compiler.runtime.triton_interpreter import why_unavailable
from plumbline.compiler.schedule.left_to_aten import Reason, reason_of
from support.lowered_calls import CALLS, DTYPES, accepted, given, together
from support.rounded_results import rounded
from support.torch_release import since_release
from support.triton_account import triton_results

aten = torch.ops.aten
LIST = Path(__file__).resolve().parents[3] / "support" / "refused_by_lowerings.toml"
TABLE = tomllib.loads(LIST.read_text(encoding="utf-8"))
TAKEN_APART = {  # by the tracer, before a lowering is asked
    *(aten.square.default, aten.div.Scalar_mode, aten.native_batch_norm.default),
    *(aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar),
}


@cache
def traced(dtype: torch.dtype) -> tuple[torch.fx.GraphModule, tuple[torch.Tensor, ...], LoopProgram]:
    """Return one graph of all calls that eager accepts for a dtype, its inputs and its loops."""
    tensors = given(dtype).tensors
    gm = trace(together(accepted(dtype)), tensors)
    return gm, tensors, lower_graph(gm, scans=True)


def refused(program: LoopProgram) -> Iterator[tuple[str, str]]:
    """Yield (operator, why) of the calls of lowered operators that stay with ATen."""
    for step in program.steps:
        if isinstance(step, Extern) and step.target in LOWERINGS and not step.alias_of:
            yield str(step.target), step.why


def test_every_lowering_has_a_call() -> None:
    assert set(CALLS) == set(LOWERINGS)


def test_every_lowering_is_reached() -> None:
    reached: set[OpOverload] = set()
    for dtype in DTYPES:
        gm, _, program = traced(dtype)
        kept = {operator for operator, _ in refused(program)}
        reached |= {node.target for node in gm.graph.nodes if str(node.target) not in kept}
    assert set(LOWERINGS) - reached == TAKEN_APART


def test_what_lowerings_refuse_is_listed() -> None:
    found: dict[tuple[str, str], set[str]] = {}
    for dtype in DTYPES:
        for row in refused(traced(dtype)[2]):
            found.setdefault(row, set()).add(str(dtype).removeprefix("torch."))
    listed = {(row["operator"], row["why"]): set(row["dtypes"]) for row in TABLE["refused"]}
    assert sum(map(len, listed.values())) <= TABLE["most"], "the list only shrinks"
    for row in TABLE["refused"]:
        later = row.get("taken_by_eager_since", {"release": None})
        if since_release(later["release"]):
            listed[row["operator"], row["why"]] |= set(later["dtypes"])
    assert found == listed, "a form that is lowered now leaves the list; none enters it"


def test_reasons_of_refused_forms_are_forms() -> None:
    steps = [step for dtype in DTYPES for step in traced(dtype)[2].steps if isinstance(step, Extern)]
    reasons = {reason_of(step) for step in steps if step.target in LOWERINGS and not step.alias_of}
    assert reasons == {Reason.FORM}


@pytest.mark.cc
@pytest.mark.skipif(bool(why_unavailable()), reason=f"kernels cannot be interpreted: {why_unavailable()}")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_lowered_operator_gives_what_c_gives(dtype: torch.dtype) -> None:
    gm, inputs, program = traced(dtype)
    options = Options(strict=True)
    wanted = compile_graph(gm, inputs, options)(*inputs)
    loose = rounded(program)
    wrong = []
    results = zip(triton_results(gm, inputs, options), wanted, program.outputs, strict=True)
    for number, (found, want, place) in enumerate(results):
        assert isinstance(found, torch.Tensor)
        assert isinstance(want, torch.Tensor)
        assert isinstance(place, Ref)
        if not same(found, want, units=8 if place.name in loose else 0):
            wrong.append(f"result {number}, {place.name}")
    assert not wrong


def same(found: torch.Tensor, want: torch.Tensor, *, units: int) -> bool:
    """Return whether two results agree in form, and in values up to so many units of the greatest one."""
    if (found.dtype, found.shape, found.stride()) != (want.dtype, want.shape, want.stride()):
        return False
    alike = (found == want) | ((found != found) & (want != want))
    if units and want.dtype.is_floating_point:
        scale = torch.finfo(want.dtype).eps * float(want.double().nan_to_num(0, 0, 0).abs().max())
        alike |= (found.double() - want.double()).abs() <= units * scale
    return bool(alike.all())
