"""What a specialisation is written of."""

import torch

from plumbline.compiler.base.events import Captured, recording
from plumbline.compiler.frontend.specialise import SpecialisationWriter
from plumbline.compiler.values.guard import Answer, GuardKind
from plumbline.compiler.values.source import Injected
from support.programs import compiled

ANSWERS = {"now": 1}


def question():
    return ANSWERS["now"]


def test_guards_demanded_while_values_are_written_are_checked(monkeypatch):
    original = SpecialisationWriter._graph_call

    def demanding(self):
        self.recorder.guards.add(Injected(question), GuardKind.ANSWER, Answer((), {}, question()))
        return original(self)

    monkeypatch.setattr(SpecialisationWriter, "_graph_call", demanding)
    run = compiled(lambda x: x + 1)
    captures = []
    for answer in (1, 1, 2, 2):
        monkeypatch.setitem(ANSWERS, "now", answer)
        with recording() as events:
            run(torch.ones(2))
        captures.append(sum(isinstance(event, Captured) for event in events))
    assert captures == [1, 0, 1, 0]
