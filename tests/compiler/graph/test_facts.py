import pytest
import torch

from plumbline.compiler.graph.facts import OpKind, facts_of, is_mutating, is_random, is_view, op_facts

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        (aten.add.Tensor, OpKind.POINTWISE),
        (aten.gelu.default, OpKind.POINTWISE),
        (aten._to_copy.default, OpKind.POINTWISE),
        (aten.leaky_relu.default, OpKind.POINTWISE),  # torch 2.11 does not tag it
        (aten.sum.dim_IntList, OpKind.REDUCTION),
        (aten._softmax.default, OpKind.REDUCTION),
        (aten.slice.Tensor, OpKind.VIEW),
        (aten._unsafe_view.default, OpKind.VIEW),
        (aten.split.Tensor, OpKind.VIEW),
        (aten.full.default, OpKind.CREATION),
        (aten.mm.default, OpKind.EXTERN),
        (aten.convolution.default, OpKind.EXTERN),
        (aten.rand.default, OpKind.RANDOM),
        (aten.native_dropout.default, OpKind.RANDOM),
        (aten.add_.Tensor, OpKind.MUTATING),
        (aten.bernoulli_.float, OpKind.MUTATING),
        (aten.add.out, OpKind.MUTATING),
    ],
)
def test_kinds(operator, kind):
    assert op_facts(operator).kind is kind


def test_positions_come_from_the_schema():
    assert op_facts(aten.add.out).mutates == (3,)
    assert op_facts(aten._native_batch_norm_legit.default).mutates == (3, 4)
    assert op_facts(aten.view.default).aliases == (0,)


def test_an_in_place_draw_is_random_and_writes():
    assert is_random(aten.uniform_.default)
    assert is_mutating(aten.uniform_.default)
    assert not is_view(aten.uniform_.default)


def test_what_may_not_be_dropped_is_not_pure():
    assert op_facts(aten.sin.default).is_pure
    assert not op_facts(aten.rand.default).is_pure
    assert not op_facts(aten.copy_.default).is_pure


def test_expensive_calls():
    assert op_facts(aten.mm.default).expensive
    assert not op_facts(aten.cat.default).expensive


def test_other_targets_have_no_facts():
    assert facts_of(torch.add) is None
    assert not is_random(print)
