"""Gradients of leaves behind tensors that an earlier compiled call has made: no lane follows that call's backward."""

import torch

from plumbline import compile as compiled_form
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import VerdictKind


def weights(parameter, x):
    return x.tanh() * 0.01 + parameter


def test_a_leaf_behind_an_earlier_call_is_not_judged_by_a_sum_that_nobody_saw():
    torch.manual_seed(1)
    parameter = torch.ones(4, requires_grad=True)
    made = {"beta": compiled_form(weights, backend="inductor")(parameter, torch.randn(300, 4))}

    def weighed(x):
        return x[:, None] * made["beta"][..., None]

    x = torch.randn(300, 32)
    roots = {"weighed": weighed, "parameter": parameter, "x": x}
    judged = judge_call(weighed, compiled_form(weighed, backend="inductor"), (x,), {}, JudgeOptions(), roots)
    assert judged.verdict.kind in (VerdictKind.EQUAL, VerdictKind.NOISE, VerdictKind.BETTER), judged.verdict.sentence


def test_a_gradient_that_a_call_drops_is_found_at_what_it_was_given():
    parameter = torch.ones(4, requires_grad=True)
    made = {"beta": parameter * 2}

    def scaled(x):
        return x * made["beta"]

    def cut(x):
        return x * made["beta"].detach() + 0 * parameter

    x = torch.randn(3, 4)
    judged = judge_call(scaled, cut, (x,), {}, JudgeOptions(), {"scaled": scaled, "parameter": parameter, "x": x})
    assert judged.verdict.kind == VerdictKind.WRONG
    assert any("beta" in finding.where for finding in judged.verdict.findings)


def test_hooks_of_the_judge_do_not_stay_in_the_history():
    parameter = torch.ones(4, requires_grad=True)
    made = {"beta": parameter * 2}

    def scaled(x):
        return x * made["beta"] * parameter

    x = torch.randn(3, 4)
    judged = judge_call(scaled, scaled, (x,), {}, JudgeOptions(), {"scaled": scaled, "parameter": parameter, "x": x})
    judged.unwrap().sum().backward()
    assert judged.verdict.kind == VerdictKind.EQUAL
    torch.testing.assert_close(parameter.grad, 4 * x.sum(0))
