"""A write to an output before its backward tells who reads what was written to, and who refuses needlessly."""

import pytest
import torch

from plumbline.fuzz.graph_programs.early_writes import (
    EARLY_WRITE,
    difference_after_early_write,
    eager_reads_what_was_written,
    gradient_is_right,
    has_history,
    refuses_where_eager_runs,
    runs_where_eager_refuses,
)
from plumbline.fuzz.graph_programs.graph_program import GraphProgram, GraphStep, ProgramBatch
from plumbline.fuzz.graph_programs.inputs import GraphInput
from plumbline.fuzz.graph_programs.quick_comparison import CallOutcome, run_call
from plumbline.fuzz.scripts import batch_script
from plumbline.oracle.verdict import Finding, Verdict, VerdictKind


class UnseenExp(torch.autograd.Function):
    """Reads its result in the backward, and does not see writes to it."""

    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.kept = result.detach()
        return result

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.kept


class NeedlessSum(torch.autograd.Function):
    """Saves a result that it does not need."""

    @staticmethod
    def forward(ctx, x):
        result = x + 1
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, gradient):
        (_,) = ctx.saved_tensors
        return gradient


def arguments():
    return (torch.tensor([0.5, 1.0, 2.0], requires_grad=True),)


def outcome(function) -> CallOutcome:
    return run_call(lambda *given: (function(*given),), arguments(), 0)


def rewritten_through_views(x):
    whole = (x * 2).view(3, 1)
    whole.t().copy_(x.view(1, 3))
    return whole


@pytest.mark.parametrize(
    ("function", "compiled", "said"),
    [
        (torch.exp, UnseenExp.apply, "a write to an output changes the gradient"),
        (lambda x: x + 1, NeedlessSum.apply, "the backward is refused after a write to an output"),
        (torch.exp, torch.exp, None),
        (torch.prod, lambda x: x[0] * x[1] * x[2], None),
        (torch.sgn, lambda x: x * 0 + x.detach().sgn(), None),
        (lambda x: x.view(-1), lambda x: x.view(-1), None),
        (rewritten_through_views, rewritten_through_views, None),
    ],
)
def test_what_a_write_tells(function, compiled, said):
    eager, mine = ((outcome(one), outcome(one)) for one in (function, compiled))
    found = difference_after_early_write(eager, mine, 0)
    assert found is None if said is None else (found or "").startswith(said)


def test_only_outputs_with_a_gradient_have_a_history():
    assert has_history(outcome(torch.exp))
    assert not has_history(outcome(lambda x: x.detach() + 1))


def written(function):
    def program(x):
        result = function(x)
        result.mul_(2)
        return (result,)

    return program


def test_a_gradient_that_eager_refuses_is_compared_with_that_of_copies():
    assert gradient_is_right(written(torch.prod), lambda x: (x[0] * x[1] * x[2] * 2,), arguments, 0)
    assert not gradient_is_right(written(torch.exp), written(UnseenExp.apply), arguments, 0)


def test_only_a_refusal_of_eager_s_own_is_looked_at():
    said = "raises nothing; eager raises RuntimeError: one of the variables has been modified by an inplace operation"
    refusal = Finding(VerdictKind.WRONG, "exceptions", "exception in the backward", said)
    other = Finding(VerdictKind.WRONG, "values", "output[0]", "is 3, eager's is 4")
    assert runs_where_eager_refuses(Verdict(VerdictKind.WRONG, "", (refusal,)))
    assert not runs_where_eager_refuses(Verdict(VerdictKind.WRONG, "", (refusal, other)))
    assert not runs_where_eager_refuses(Verdict(VerdictKind.EQUAL, ""))


def test_the_script_of_a_finding_compares_the_backwards(capsys):
    steps = (GraphStep("exp", (0,)), GraphStep("flatten", (1,)))
    program = GraphProgram((GraphInput((3,), requires_grad=True),), steps, (2,))
    finding = Finding(VerdictKind.WRONG, EARLY_WRITE, "output", "a write to an output changes the gradient")
    verdict = Verdict(VerdictKind.WRONG, finding.sentence, (finding,))
    script = batch_script(ProgramBatch((program,)), "plumbline", "aot_eager", verdict)
    exec(script, {})
    assert capsys.readouterr().out.strip() == "as in eager"
    unseen = script.replace("plumbline.compile(f, backend='aot_eager')", "lambda a: (UnseenExp.apply(a),)")
    with pytest.raises(SystemExit):
        exec(unseen, {"UnseenExp": UnseenExp})


def test_the_script_of_programs_in_company_compares_each_of_them(capsys):
    program = GraphProgram((GraphInput((3,), requires_grad=True),), (GraphStep("exp", (0,)),), (1,))
    finding = Finding(VerdictKind.WRONG, EARLY_WRITE, "output", "a write to an output changes the gradient")
    verdict = Verdict(VerdictKind.WRONG, finding.sentence, (finding,))
    script = batch_script(ProgramBatch((program, program)), "plumbline", "aot_eager", verdict)
    exec(script, {})
    assert capsys.readouterr().out.split("\n")[:2] == ["as in eager"] * 2


def test_a_refusal_is_right_where_eager_reads_what_was_written():
    def scaled(of_number):
        def program(x, factor):
            result = of_number(factor, x)
            factor.add_(1)
            return (result,)

        return program

    def numbers():
        return torch.tensor(2.0, requires_grad=True), torch.tensor(3.0)

    assert eager_reads_what_was_written(scaled(torch.kron), numbers, 0)
    assert not eager_reads_what_was_written(scaled(torch.add), numbers, 0)
    assert not eager_reads_what_was_written(scaled(torch.mul), numbers, 0)  # eager refuses it as well
    said = "raises RuntimeError: a variable has been modified by an inplace operation; eager raises nothing"
    refusal = Finding(VerdictKind.WRONG, "exceptions", "exception in the backward", said)
    assert refuses_where_eager_runs(Verdict(VerdictKind.WRONG, "", (refusal,)))
    assert not runs_where_eager_refuses(Verdict(VerdictKind.WRONG, "", (refusal,)))
