"""Packages of the table are called once, whenever they were imported, and one that refuses does no harm."""

import sys
import types

import torch

import plumbline
from plumbline.compiler.base.events import CompilerFailed, recording
from plumbline.compiler.frontend import warmed_packages
from plumbline.oracle.harness.session import JudgeSession


def imported(monkeypatch, get_backend):
    monkeypatch.setattr(warmed_packages, "_MADE", set())
    module = types.SimpleNamespace(get_backend=get_backend)
    monkeypatch.setitem(sys.modules, "einops._backends", module)


def test_the_first_call_is_made_once_before_a_capture(monkeypatch):
    seen = []
    imported(monkeypatch, seen.append)
    compiled = plumbline.compile(lambda x: x + len(seen), backend="eager")
    assert compiled(torch.ones(1)).item() == 2
    assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert [type(one) for one in seen] == [torch.Tensor]


def test_a_package_of_another_form_is_left_alone(monkeypatch):
    imported(monkeypatch, None)
    with recording() as events:
        assert plumbline.compile(lambda x: x + 1, backend="eager")(torch.ones(1)).item() == 2
    assert not [event for event in events if isinstance(event, CompilerFailed)]


def test_what_is_warmed_is_no_change_of_a_judged_call(monkeypatch):
    kinds = {}
    imported(monkeypatch, lambda tensor: kinds.setdefault(type(tensor), "torch"))
    session = JudgeSession(compiler="plumbline", backend="eager")
    with session:
        session.compiled(lambda x: x + len(kinds))(torch.ones(1))
    assert [call.verdict.kind.value for call in session.calls] == ["EQUAL"]
    assert kinds == {torch.Tensor: "torch"}
