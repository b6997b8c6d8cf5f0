"""What is noted of a module's children is enough to call one of them alone."""

import torch
from torch import nn

from plumbline.minifier.source.child_calls import child_calls
from plumbline.minifier.source.source_run import SourceSettings
from plumbline.minifier.source.warm_process import WarmProcess


class Inner(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.first, self.second = nn.Linear(config, 3, bias=False), nn.Linear(3, 3)

    def forward(self, x, *, by, also=None):
        return self.second(self.first(x)) * by


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 4, padding_idx=0)
        self.inner, self.other = Inner(4), Inner(4)
        self.drop, self.last = nn.Dropout(0.5), nn.Linear(3, 3)

    def forward(self, index):
        h = self.words(index)
        h = self.inner(h, by=2) + self.other(h, by=2)
        return self.last(self.drop(h.detach()))


def test_calls_of_children_are_noted_smallest_first_and_those_alike_once():
    model = Outer().eval()
    calls = {call.path: call for call in child_calls(model, (torch.tensor([1, 2]),), {})}
    assert list(calls) == ["words", "inner.first", "inner.second", "drop", "last", "inner"]
    assert calls["words"].arguments == "torch.tensor([1, 2], dtype=torch.int64)"
    assert calls["inner.second"].arguments == "torch.randn(2, 3, requires_grad=True)"
    assert calls["last"].arguments == "torch.randn(2, 3)"
    assert calls["inner"].arguments == "torch.randn(2, 4, requires_grad=True), by=2"
    assert calls["inner"].home == (__name__, "Inner")
    assert not calls["inner"].training
    assert not any(child._forward_pre_hooks for child in model.modules())


def test_what_makes_a_child_of_torch_is_written_where_it_makes_an_equal_one():
    calls = {call.path: call.made for call in child_calls(Outer(), (torch.tensor([1, 2]),), {})}
    assert calls["words"] == "torch.nn.Embedding(9, 4, padding_idx=0)"
    assert calls["inner.first"] == "torch.nn.Linear(in_features=4, out_features=3, bias=False)"
    assert calls["inner"] == ""


def test_what_runs_until_an_exception_is_noted():
    calls = child_calls(nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 6)), (torch.ones(2, 3),), {})
    assert [call.path for call in calls] == ["0", "1"]


def test_inputs_without_a_text_are_not_noted():
    class Holder:
        pass

    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.odd, self.plain = Taker(), Taker()

        def forward(self):
            self.odd(Holder())
            self.plain((None, [1.5, True], "text"))

    class Taker(nn.Module):
        def forward(self, value):
            pass

    (call,) = child_calls(Odd(), (), {})
    assert (call.path, call.arguments) == ("plain", "(None, [1.5, True], 'text')")


def test_a_run_tells_the_calls_of_children_of_what_is_compiled():
    text = "import torch, plumbline\nplumbline.compile(torch.nn.Sequential(torch.nn.ReLU()))(torch.ones(3))\n"
    settings = SourceSettings(compiler="plumbline", backend="eager", children=True)
    with WarmProcess() as warm:
        report = warm.ask(text, settings)
    assert [(call.path, call.made) for call in report.children] == [("0", "torch.nn.ReLU()")]
    assert report.signature is None
