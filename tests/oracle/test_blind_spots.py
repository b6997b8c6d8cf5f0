"""Faults that accuracy checks in use today let pass, each planted and caught (the table of the oracle's study)."""

import ctypes
import os
import threading

import pytest
import torch
from torch.nn import functional

from plumbline.oracle import JudgeOptions, VerdictKind, check

torch.manual_seed(0)
X = torch.randn(64, 48)


class Backward(torch.autograd.Function):
    """Identity forward of a given result, with a planted backward."""

    @staticmethod
    def forward(ctx, x, result, planted):
        ctx.planted, ctx.shape = planted, x.shape
        return result.clone()

    @staticmethod
    def backward(ctx, grad):
        return ctx.planted(grad).reshape(ctx.shape), None, None


def with_backward(function, planted):
    return lambda x: Backward.apply(x, function(x).detach(), planted)


def first_aspect(verdict):
    return verdict.findings[0].aspect


def test_control_a_reordered_sum_is_noise():
    verdict = check(lambda x: x.sum(0), (X,), compiled=lambda x: x.flip(0).sum(0) * 1.0)
    assert verdict.kind in (VerdictKind.EQUAL, VerdictKind.NOISE, VerdictKind.BETTER)


def test_one_nan_in_eager_does_not_excuse_garbage_elsewhere():
    x = X.clone()
    x[0, 0] = float("nan")

    def garbage(x):
        wrong = torch.randn_like(x)
        wrong[5, 5] = float("nan")
        return wrong

    assert check(lambda x: x * 2, (x,), compiled=garbage).kind is VerdictKind.WRONG


def test_a_nan_moved_by_one_is_wrong():
    x = X.clone()
    x[3, 3] = float("nan")

    def moved(x):
        y = (x * 2).nan_to_num(0.0)
        y[3, 4] = float("nan")
        return y

    assert check(lambda x: x * 2, (x,), compiled=moved).kind is VerdictKind.WRONG


@pytest.mark.parametrize(("right", "wrong"), [(100_000, 100_009), (5000, 5004), (7, 8)])
def test_integers_are_compared_exactly(right, wrong):
    x = torch.tensor([right])
    verdict = check(lambda x: x + 0, (x,), compiled=lambda x: x + (wrong - right))
    assert verdict.kind is VerdictKind.WRONG


def test_an_argmax_that_is_off_is_wrong():
    x = torch.arange(6000.0)
    verdict = check(lambda x: x.argmax(), (x,), compiled=lambda x: x.argmax() - 4)
    assert verdict.kind is VerdictKind.WRONG


def test_the_right_direction_with_the_wrong_length_is_wrong():
    assert check(lambda x: x @ x.T, (X,), compiled=lambda x: 3 * (x @ x.T)).kind is VerdictKind.WRONG


@pytest.mark.parametrize("error", [0.01, 0.1, 1.0])
def test_one_wrong_element_in_a_million_is_seen(error):
    x = torch.randn(1000, 1000)

    def wrong(x):
        y = x * 2 + 1
        y[123, 456] += error
        return y

    verdict = check(lambda x: x * 2 + 1, (x,), compiled=wrong)
    assert verdict.kind is VerdictKind.WRONG
    assert verdict.findings[0].numbers.worst_index == (123, 456)


def test_a_dropped_mutation_of_an_input_is_wrong():
    verdict = check(lambda x: x.add_(1) * 2, (X.clone(),), compiled=lambda x: (x + 1) * 2)
    assert verdict.kind is VerdictKind.WRONG
    assert first_aspect(verdict) == "mutations"


def test_a_dropped_mutation_of_a_buffer_and_of_a_closure_is_wrong():
    norm = torch.nn.BatchNorm1d(48)
    counts = {"calls": 0}

    def eager(x):
        counts["calls"] += 1
        return norm(x)

    def compiled(x):
        return functional.batch_norm(x, None, None, norm.weight, norm.bias, True)

    verdict = check(eager, (X,), compiled=compiled)
    assert {finding.aspect for finding in verdict.findings if finding.kind is VerdictKind.WRONG} == {
        "mutations",
        "python",
    }


@pytest.mark.parametrize(
    ("function", "planted"),
    [
        (lambda x: functional.softmax(x, -1), lambda grad: grad * 0),
        (lambda x: functional.layer_norm(x, (48,)), lambda grad: grad * 0),
        (lambda x: x * 1.0, lambda grad: grad.flip(0)),
    ],
    ids=["softmax-zero", "layer-norm-zero", "rows-permuted"],
)
def test_a_wrong_backward_is_seen_although_its_mean_is_right(function, planted):
    x = X.clone().requires_grad_()
    verdict = check(function, (x,), compiled=with_backward(function, planted))
    assert verdict.kind is VerdictKind.WRONG
    assert first_aspect(verdict) == "gradients"


def test_a_fault_that_shows_only_when_two_inputs_alias_is_seen():
    def eager(x, y):
        x.add_(1)
        return y * 2

    def as_if_apart(x, y):
        result = y * 2
        x.add_(1)
        return result

    x = X.clone()
    assert check(eager, (x, X.clone()), compiled=as_if_apart).kind is VerdictKind.EQUAL
    assert check(eager, (x, x), compiled=as_if_apart).kind is VerdictKind.WRONG


def test_a_nan_in_eager_does_not_loosen_the_rest():
    x = X.clone()
    x[0, 0] = float("nan")
    assert check(lambda x: x * 2, (x,), compiled=lambda x: x * 2.07).kind is VerdictKind.WRONG


def test_a_bias_of_less_than_one_ulp_is_seen_in_bfloat16():
    x = torch.rand(256, 256).bfloat16() + 0.5
    verdict = check(lambda x: x * 1.7, (x,), compiled=lambda x: (x.float() * 1.7 * 1.004).bfloat16())
    assert verdict.kind is VerdictKind.WRONG


@pytest.mark.parametrize(
    "wrong",
    [lambda x: x * 0, lambda x: x + 0, lambda x: functional.dropout(x, 0.5) * 0.5],
    ids=["zeros", "no-op", "missing-scale"],
)
def test_wrong_dropout_is_seen(wrong):
    verdict = check(lambda x: functional.dropout(x, 0.5) + 1, (X,), compiled=lambda x: wrong(x) + 1)
    assert verdict.kind is VerdictKind.WRONG


def test_dropout_before_a_matmul_is_compared_draw_by_draw():
    w = torch.randn(48, 48)
    verdict = check(
        lambda x: functional.dropout(x, 0.5) @ w,
        (X,),
        compiled=lambda x: torch.cat([functional.dropout(x, 0.5)[:32] @ w, functional.dropout(x, 0.5)[32:] @ w]),
    )
    assert verdict.kind is VerdictKind.WRONG
    halves = check(
        lambda x: functional.dropout(x, 0.5) @ w,
        (X,),
        compiled=lambda x: (lambda y: y[:, :24] @ w[:24] + y[:, 24:] @ w[24:])(functional.dropout(x, 0.5)),
    )
    assert halves.kind in (VerdictKind.EQUAL, VerdictKind.NOISE, VerdictKind.BETTER)


def test_a_generator_left_elsewhere_is_wrong():
    verdict = check(lambda x: x + torch.rand(1), (X,), compiled=lambda x: (x + torch.rand(1), torch.rand(1))[0])
    assert verdict.kind is VerdictKind.WRONG
    assert first_aspect(verdict) == "rng"


def test_a_compiled_program_that_differs_from_itself_is_named():
    def unstable(x):
        return x * 2 + int.from_bytes(os.urandom(2))

    verdict = check(lambda x: x * 2, (X,), compiled=unstable, options=JudgeOptions(gradients=False))
    assert any(finding.kind is VerdictKind.NONDETERMINISTIC for finding in verdict.findings)
    assert verdict.failed


def test_a_program_that_differs_from_itself_in_eager_too_is_no_fault():
    def unsteady(x):
        return x * (1 + 1e-6 * int.from_bytes(os.urandom(2)))

    verdict = check(unsteady, (X,), compiled=unsteady, options=JudgeOptions(gradients=False))
    assert not verdict.failed
    assert any("eager differs from itself" in finding.sentence for finding in verdict.findings)


def test_notes_on_the_way_to_a_memo_are_made_once_by_both():
    hidden, notes = ctypes.c_int(0), threading.local()

    def filling(x):
        if not hidden.value:  # no snapshot looks here: what runs second finds it filled
            hidden.value = 1
            notes.made = []
        return x + 1

    assert check(filling, (X,), compiled=filling).kind is VerdictKind.EQUAL
    hidden.value = 0

    def noting(x):
        notes.other = 1
        return filling(x)

    assert check(filling, (X,), compiled=noting).kind is VerdictKind.WRONG
