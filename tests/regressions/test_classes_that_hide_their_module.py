"""A class written in C may have a descriptor in the place of its module's name; here one in Python does."""

import torch

from plumbline.oracle.harness.session import JudgeSession
from plumbline.oracle.state.snapshot import Snapshot


class Fused:
    __module__ = property(lambda self: "made elsewhere")

    def __init__(self):
        self.factor = 2


def test_such_objects_and_classes_are_walked_and_judged():
    held = Fused()

    def scaled(x):
        held.factor += 1
        return x * held.factor, Fused

    session = JudgeSession(compiler="plumbline", backend="eager")
    with session:
        result, _ = session.compiled(scaled)(torch.ones(2))
    assert result.tolist() == [3.0, 3.0]
    assert [call.verdict.kind.value for call in session.calls] == ["EQUAL"]


def test_what_they_hold_is_put_back():
    held = Fused()
    snapshot = Snapshot.take({"held": held, "kind": Fused})
    held.factor = 5
    snapshot.rewind()
    assert held.factor == 2
