"""The judge: what one judged call leaves behind, what it says, and what it decides about values."""

import random

import numpy
import pytest
import torch
from torch.nn import functional

from plumbline.oracle import JudgeOptions, VerdictKind, check

X = torch.linspace(-2, 2, 24).reshape(4, 6)


class State:
    level = 1

    def __init__(self):
        self.log = []
        self.table = {"a": 1}
        self.count = 0


def remember(state, x):
    state.log.append(x)
    state.table["b"] = 2
    state.count += 1
    State.level = 2


def test_the_caller_keeps_what_one_compiled_call_leaves():
    State.level = 1
    state = State()
    check(remember, (state, X), compiled=remember)
    assert (len(state.log), state.count, state.table) == (1, 1, {"a": 1, "b": 2})


def test_arguments_are_as_after_one_call():
    x = torch.zeros(3)
    check(lambda x: x.add_(1), (x,), compiled=lambda x: x.add_(1))
    assert x.tolist() == [1, 1, 1]


def test_generators_after_the_call_are_compared():
    def eager(x):
        return x * random.random()

    assert check(eager, (X,), compiled=eager).kind is VerdictKind.EQUAL
    frozen = check(eager, (X,), compiled=lambda x: x * 0.5)
    assert {"rng", "values"} <= {finding.aspect for finding in frozen.findings}


def test_an_ignored_aspect_is_a_note_not_a_failure():
    options = JudgeOptions(ignore=frozenset({"metadata"}))
    verdict = check(lambda x: (x * 2).T, (X,), compiled=lambda x: (x * 2).T.contiguous(), options=options)
    assert verdict.kind is VerdictKind.EQUAL
    assert "metadata: output stride" in verdict.notes[0]


def test_the_sign_of_zero_is_a_note():
    verdict = check(lambda x: x * 0.0, (X,), compiled=lambda x: (x * 0.0).abs())
    assert verdict.kind is VerdictKind.EQUAL
    assert any(note.startswith("zero-sign") for note in verdict.notes)


def test_strides_of_gradients_are_a_note():
    w = torch.ones(3, 4, requires_grad=True)

    class Strided(torch.autograd.Function):
        @staticmethod
        def forward(ctx, w):
            return w * 2

        @staticmethod
        def backward(ctx, grad):
            return (grad * 2).T.contiguous().T

    verdict = check(lambda w: w * 2, (w,), compiled=Strided.apply)
    assert verdict.kind is VerdictKind.EQUAL
    assert any("gradient of w stride" in note for note in verdict.notes)


def test_more_accurate_than_eager_is_better():
    def exact(x):
        return x.bfloat16().double().sum()[None].float()

    verdict = check(lambda x: x.bfloat16().cumsum(0)[-1:].float(), (torch.rand(20_000),), compiled=exact)
    assert verdict.kind in (VerdictKind.BETTER, VerdictKind.NOISE)


def test_numpy_programs_are_judged_without_a_float64_reference():
    a = numpy.linspace(0, 1, 5, dtype=numpy.float32)
    assert check(numpy.sin, (a,), compiled=numpy.sin).kind is VerdictKind.EQUAL
    assert check(numpy.sin, (a,), compiled=numpy.cos).kind is VerdictKind.WRONG


def test_gradients_off_judges_no_gradients():
    x = X.clone().requires_grad_()
    calls = []

    class Loud(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            calls.append(1)
            return grad

    check(Loud.apply, (x,), compiled=Loud.apply, options=JudgeOptions(gradients=False))
    assert calls == []


def test_native_random_numbers_are_judged_by_distribution():
    def shuffled(x):
        return functional.dropout(x.flip(0), 0.5).flip(0)

    x = torch.ones(64, 64)
    frozen = torch.ones(64, 64) * 2 * (torch.rand(64, 64) > 0.5)

    def judged(compiled):
        options = JudgeOptions(rng="native", gradients=False)
        return check(lambda x: functional.dropout(x, 0.5), (x,), compiled=compiled, options=options)

    assert not judged(shuffled).failed
    assert judged(lambda x: functional.dropout(x, 0.4)).kind is VerdictKind.WRONG
    assert judged(lambda x: frozen.clone()).kind is VerdictKind.WRONG


def test_views_passed_together_stay_views_of_one_memory_with_gradients():
    base = torch.ones(6, requires_grad=True) * 1
    left, right = base[:4], base[2:]

    def program(a, b):
        a.mul_(3)
        return a.sum() + b.sum()

    assert check(program, (left.detach(), right.detach()), compiled=program).kind is VerdictKind.EQUAL


def test_modules_with_hooks_buffers_and_training_state_are_equal_to_themselves():
    model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.BatchNorm1d(6), torch.nn.Dropout(0.3))
    seen = []
    model[0].register_forward_hook(lambda module, args, out: seen.append(out.shape))
    assert check(model, (X,), compiled=model.forward).kind is VerdictKind.EQUAL
    assert len(seen) == 1
    assert int(model[1].num_batches_tracked) == 1


def test_a_sentence_names_place_error_and_scale():
    verdict = check(lambda x: x.sin(), (X,), compiled=lambda x: x.sin() + 1e-3 * (x > 1.9))
    assert verdict.sentence.startswith("output")
    numbers = verdict.findings[0].numbers
    assert numbers.worst_index == (3, 5)
    assert numbers.error == pytest.approx(1e-3, rel=1e-2)
    assert numbers.scale < 1e-6


@pytest.mark.parametrize("stop", [KeyboardInterrupt, pytest.skip.Exception, pytest.fail.Exception])
def test_what_ends_a_test_is_no_exception_of_the_program_and_leaves_nothing_behind(stop):
    log: list = []

    def interrupted(x):
        log.append(1)
        x.add_(1)
        raise stop("time is up")

    x = torch.zeros(2)
    with pytest.raises(stop):
        check(interrupted, (x,), compiled=interrupted)
    assert log == []
    assert x.tolist() == [0, 0]
