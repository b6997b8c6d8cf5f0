"""Arguments of a tensor's subclass that have a history: the judge's runs got plain tensors, and eager raised there."""

import pytest
import torch

from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import VerdictKind


class Marked(torch.Tensor):
    """Results are told what the first of the arguments was told."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, Marked) and isinstance(args[0], Marked) and hasattr(args[0], "mark"):
            result.mark = args[0].mark
        return result


def marked():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_().as_subclass(Marked)
    x.mark = "first"
    return x


def rows_of(x):
    return x[0], x[1]


def asked(*tensors):
    assert all(isinstance(one, Marked) for one in tensors)
    assert all(one.mark == "first" for one in tensors)
    return sum(one.sin() for one in tensors)


def written(x):
    assert x.mark == "first"
    x.mul_(2)
    return x + 1


@pytest.mark.parametrize(
    ("program", "made"),
    [
        (asked, lambda: (marked() * 2,)),
        (asked, lambda: rows_of(marked() * 2)),
        (asked, lambda: ((marked() * 2).t(), (marked() + 1).t())),
        (written, lambda: (marked() * 2,)),
    ],
    ids=["alone", "sharing", "strided", "written"],
)
def test_a_stand_in_has_the_class_and_the_attributes_of_what_it_stands_for(program, made):
    judged = judge_call(program, program, made(), {}, JudgeOptions(), {"program": program})
    assert judged.verdict.kind is VerdictKind.EQUAL, judged.verdict.sentence
    assert judged.unwrap().mark == "first"


def test_a_fault_behind_such_an_argument_is_found():
    def cut(x):
        return x.detach().sin() + 0 * x

    judged = judge_call(asked, cut, (marked() * 2,), {}, JudgeOptions(), {"program": asked})
    assert judged.verdict.kind is VerdictKind.WRONG
