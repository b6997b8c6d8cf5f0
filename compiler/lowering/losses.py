"""The negative log likelihood of classes: the gradient is written in one pass with that of log_softmax behind it.

A class is looked up in its row, so one out of range stops the graph; rows of the class that is ignored count nothing.
"""

from __future__ import annotations

import torch

from ..loops.body import Scalar, ScalarBuilder
from .indexing import as_expr_of, looked_up
from .registry import LoweringCall, lowers
from .writer import Index, LoopTensor, NoLowering, Reduction

aten = torch.ops.aten
B = ScalarBuilder
NONE, MEAN = 0, 1  # torch's numbers of reductions; the third one is the sum


class _Classes:
    """Rows of scores, and the class of each."""

    def __init__(self, call: LoweringCall) -> None:
        self.scores, self.target = call.tensor("self"), call.tensor("target")
        self.ignored = call.integer("ignore_index")
        weight = call.arguments.get("weight")
        self.weight = weight if isinstance(weight, LoopTensor) else None
        self.dtype = self.scores.dtype
        if len(self.scores.shape) != 2 or self.target.dtype != torch.int64:
            raise NoLowering("classes of something else than rows of scores")
        if self.scores.shape[1] == 0:
            raise NoLowering("rows without a class, which may all be ignored")
        if self.dtype not in (torch.float32, torch.float64):
            raise NoLowering("a loss of half precision, which eager rounds at each step")
        if self.weight is not None and self.weight.dtype != self.dtype:
            raise NoLowering("weights of another dtype")

    def of_row(self, b: B, row: Index) -> tuple[Scalar, Scalar]:
        """Return the class of a row, zero where it is ignored, and whether it is."""
        target = self.target.at(b, row)
        ignored = b.op("eq", target, b.constant(self.ignored, torch.int64))
        return b.op("where", ignored, b.constant(0, torch.int64), target), ignored

    def weight_of(self, b: B, row: Index) -> Scalar:
        """Return the weight of a row's class, zero where it is ignored."""
        place, ignored = self.of_row(b, row)
        weight = b.constant(1, self.dtype)
        if self.weight is not None:
            found = looked_up(place, self.scores.shape[1], 0)
            weight = self.weight.looked_up(b, (as_expr_of(found[0]),), [found])
        return b.op("where", ignored, b.constant(0, self.dtype), weight)

    def loss_of(self, b: B, row: Index) -> Scalar:
        """Return what a row adds to the loss."""
        place, ignored = self.of_row(b, row)
        found = looked_up(place, self.scores.shape[1], 0)
        score = b.op("neg", self.scores.looked_up(b, (*row, as_expr_of(found[0])), [found]))
        if self.weight is not None:
            score = b.op("mul", score, self.weight_of(b, row))
        return b.op("where", ignored, b.constant(0, self.dtype), score)


@lowers(aten.nll_loss_forward.default)
def lower_likelihood(call: LoweringCall) -> tuple[LoopTensor, LoopTensor]:
    """The loss of each row, their sum or mean; and the sum of the weights, which the gradient wants."""
    classes, reduction = _Classes(call), call.integer("reduction")
    rows = classes.target.shape
    if reduction == NONE:
        losses = call.elements(classes.loss_of)
        return losses, call.elements(lambda b, _: b.constant(0, classes.dtype), 1)
    weights = call.reduction(Reduction(rows, (0,), "sum", classes.dtype, classes.weight_of), result=1)
    total = call.writer.reduce(
        Reduction(rows, (0,), "sum", classes.dtype, classes.loss_of, keepdim=False),
        dtype=classes.dtype,
        name=f"{call.name}_sum",
    )

    def element(b: B, index: Index) -> Scalar:
        whole = total.at(b, index)
        return b.op("div", whole, weights.at(b, index)) if reduction == MEAN else whole

    return call.elements(element), weights


@lowers(aten.nll_loss_backward.default)
def lower_likelihood_backward(call: LoweringCall) -> LoopTensor:
    """Minus the weighted gradient at the class of each row, and zero elsewhere."""
    classes, reduction = _Classes(call), call.integer("reduction")
    gradient, total = call.tensor("grad_output"), call.tensor("total_weight")

    def element(b: B, index: Index) -> Scalar:
        row, zero = index[:1], b.constant(0, classes.dtype)
        place, ignored = classes.of_row(b, row)
        place = b.checked(place, classes.scores.shape[1])
        given = gradient.at(b, row if reduction == NONE else ())
        if reduction == MEAN:
            given = b.op("div", given, total.at(b, ()))
        given = b.op("neg", given)
        if classes.weight is not None:
            given = b.op("mul", classes.weight_of(b, row), given)
        here = b.op("eq", b.index(index[1], torch.int64), place)
        return b.op("where", b.op("bit_and", here, b.op("bit_not", ignored)), given, zero)

    return call.elements(element)
