"""Where the noise of one output comes from: its error, followed back through the tape.

The error of a result is the sum of what its operator rounds and of what the operator makes of the errors of its
operands.  The second is linear in them but for rounding squared, if the derivative is taken half way between the
computed and the exact operands: for a function of degree two that is the secant.  So one reverse pass over the tape,
started with the error of the output, tells for every result how much of that error passes through it.
"""

import contextlib
from dataclasses import dataclass

import torch
from torch import Tensor

from .recorded_run import ReadTensor, RecordedCall, WrittenTensor, difference
from .value_pairs import PairStorage, StoragePlace

# Their derivatives in torch take mean and deviation, results or operands, for functions of the input; here these carry
# errors of their own.
WITH_STATISTICS = frozenset(
    "native_layer_norm native_layer_norm_backward native_group_norm native_group_norm_backward native_batch_norm "
    "native_batch_norm_backward _native_batch_norm_legit _native_batch_norm_legit_no_training "
    "_native_batch_norm_legit_functional _batch_norm_with_update _fused_rms_norm _fused_rms_norm_backward "
    "_scaled_dot_product_flash_attention_for_cpu".split()
)


@dataclass(frozen=True, slots=True)
class Flow:
    """What one operator has to do with the error of an output, as shares of its squared norm.

    passing: of the error that is in the output because it is in this operator's results.
    introduced: passing, less what comes from the operands; over all operators these add up to 1.
    rounding: what the operator rounds, on the operands that it has; less than all of `introduced` where rounding takes
    another branch, or where the operator has no derivative.  number: of the operator on the tape.
    """

    call: RecordedCall
    passing: float
    introduced: float
    rounding: float
    differentiable: bool
    number: int


def flows_of(tape: list[RecordedCall], storage: PairStorage | None, place: StoragePlace, error: Tensor) -> list[Flow]:
    """Return the flows of an output's error, in the order of the tape; none for an output without an error.

    storage, place: of the output when the run ended.  error: computed minus exact, wide.
    """
    total = float(torch.linalg.vector_norm(error)) ** 2 if error.numel() else 0.0
    if storage is None or not total:
        return []
    memory = _Adjoints()
    memory.add(storage, place, error / total)
    flows: list[Flow] = []
    for number in reversed(range(len(tape))):
        call = tape[number]
        weights = [
            None if outcome is None else memory.take(outcome.storage, outcome.place) for outcome in call.outcomes
        ]
        if any(weight is not None for weight in weights):
            flows.append(_through(call, number, weights, memory))
    return flows[::-1]


class _Adjoints:
    """For every storage, how the output's error depends on the error of each of its elements."""

    def __init__(self) -> None:
        self._flat: dict[int, Tensor] = {}

    def add(self, storage: PairStorage, place: StoragePlace, weight: Tensor) -> None:
        flat = self._flat.get(id(storage))
        if flat is None:
            flat = self._flat[id(storage)] = torch.zeros_like(storage.exact)
        place.add_to(flat, storage.dtype, weight)

    def take(self, storage: PairStorage, place: StoragePlace) -> Tensor | None:
        """Return the weights of what has just been written, and forget them: before that there were other numbers."""
        flat = self._flat.get(id(storage))
        view = None if flat is None else place.view(flat, storage.dtype)
        if view is None or not view.numel():
            return None
        if not bool(view.any()):
            return None
        weight = view.clone()
        view.zero_()
        return weight


def _through(call: RecordedCall, number: int, weights: list[Tensor | None], memory: _Adjoints) -> Flow:
    passing = rounding = 0.0
    for outcome, weight in zip(call.outcomes, weights, strict=True):
        if outcome is None or weight is None:
            continue
        passing += inner(weight, difference(outcome.computed, outcome.exact))
        if outcome.rounding is not None:
            rounding += inner(weight, outcome.rounding)
    coming = 0.0
    moving = [n for n, operand in enumerate(call.operands) if not operand.is_exact and operand.has_floats]
    gradients = _gradients(call, moving, weights) if moving else []
    for which, gradient in zip(moving, gradients, strict=False):
        if gradient is None:
            continue
        operand = call.operands[which]
        gradient = gradient.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        coming += inner(gradient, difference(operand.computed, operand.exact))
        if operand.storage is not None:
            memory.add(operand.storage, operand.place, gradient)
    known = not moving or any(gradient is not None for gradient in gradients)
    return Flow(call, passing, passing - coming, rounding if known else passing, known, number)


def inner(weight: Tensor, error: Tensor) -> float:
    """Return the sum of products; of complex numbers the real part, which is how a loss depends on them."""
    if weight.is_complex() or error.is_complex():
        return float((weight.conj() * error).sum().real)
    return float((weight * error).sum())


def _gradients(call: RecordedCall, moving: list[int], weights: list[Tensor | None]) -> list[Tensor | None]:
    """Return the derivative of the weighted results by each moving operand, half way between its two values."""
    facts = call.call.facts
    ways = [call.replay]
    if facts.decomposition is not None and call.draw is None and facts.name in WITH_STATISTICS:
        ways.insert(0, call.replay_smaller)
    elif facts.decomposition is not None and call.draw is None and not facts.written:
        ways.append(call.replay_smaller)
    with torch.inference_mode(False), torch.enable_grad():
        values = [_half_way(operand, leaf=n in moving) for n, operand in enumerate(call.operands)]
        leaves = [values[n] for n in moving]
        for way in ways:
            with contextlib.suppress(Exception):  # no derivative, or none in this form
                return _pulled_back(way(values), call.outcomes, weights, leaves)
    return [None] * len(leaves)


def _half_way(operand: ReadTensor, *, leaf: bool) -> Tensor:
    if not leaf:
        return operand.computed
    middle = operand.exact + difference(operand.computed, operand.exact) / 2
    return middle.detach().requires_grad_()


def _pulled_back(
    results: list[Tensor],
    outcomes: tuple[WrittenTensor | None, ...],
    weights: list[Tensor | None],
    leaves: list[Tensor],
) -> list[Tensor | None]:
    pairs = [
        (result, weight.to(result.dtype))
        for result, outcome, weight in zip(results, outcomes, weights, strict=False)
        if outcome is not None and weight is not None and result.requires_grad
    ]
    if not pairs:
        return [None] * len(leaves)
    heads, cotangents = zip(*pairs, strict=True)
    return list(torch.autograd.grad(heads, leaves, cotangents, allow_unused=True))
