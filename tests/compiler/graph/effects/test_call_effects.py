"""What calls on fake tensors do beside giving values is noted, whichever way torch runs them."""

import pytest
import torch
from torch import fx

from plumbline.compiler.base.fake_mode_start import make_fake
from plumbline.compiler.base.torch_facts import WatchedFakeMode
from plumbline.compiler.graph.effects.call_effects import CallEffect, EffectLog, operator_effects

aten = torch.ops.aten


def watched() -> tuple[WatchedFakeMode, EffectLog, torch.Tensor, fx.Node]:
    mode, log = WatchedFakeMode(allow_non_fake_inputs=True), EffectLog()
    fake, node = make_fake(mode, torch.ones(3, 3)), fx.Graph().placeholder("x")
    log.note_input(fake, node)
    mode.watcher = log.watch
    return mode, log, fake, node


def test_a_write_to_an_input_is_noted_also_through_a_view() -> None:
    mode, log, fake, node = watched()
    with mode:
        fake.sin()
        fake[0].add_(1)
    assert log.events == [CallEffect(writes=frozenset({node}))]


def test_draws_and_failures_are_noted_in_order() -> None:
    mode, log, fake, _ = watched()
    with mode:
        torch.index_select(fake, 0, torch.zeros(1, dtype=torch.int64))
        torch.nn.functional.dropout(fake, 0.5)
    told = [event for event in log.events if event.draws or event.may_fail]  # others write to what is made here
    assert [bool(event.draws) for event in told] == [False, True]
    assert told[0].may_fail


def test_what_a_call_is_made_of_inside_the_mode_is_not_noted() -> None:
    mode, log, fake, _ = watched()
    names = []

    def watcher(mode, operator, types, args, kwargs):
        names.append(operator)
        return log.watch(mode, operator, types, args, kwargs)

    mode.watcher = watcher
    with mode, torch.no_grad():
        torch.nn.functional.silu(fake)  # fake modes decompose it
    assert names == [aten.silu.default]


def test_a_composite_call_is_noted_by_its_parts_in_inference_mode() -> None:
    mode, log, _, _ = watched()
    with mode, torch.inference_mode():
        torch.nn.functional.dropout(torch.ones(3), 0.5)
    assert [event.draws for event in log.events] == [(torch.device("cpu"),)]


def test_nothing_is_noted_without_a_watcher() -> None:
    mode, log, fake, _ = watched()
    mode.watcher = None
    with mode:
        fake.add_(1)
    assert log.events == []


@pytest.mark.parametrize("recovers", [True, False])
def test_the_watcher_stays_when_a_call_fails(recovers: bool) -> None:
    mode, log, fake, node = watched()
    with mode:
        with pytest.raises(RuntimeError):
            fake.reshape(7)
        if recovers:
            fake.add_(1)
    assert [event.writes for event in log.events if event.writes] == ([frozenset({node})] if recovers else [])


def test_operators_are_described_once() -> None:
    assert operator_effects(aten.sin.default).is_silent
    assert operator_effects(aten.add_.Tensor).writes == ((0, "self"),)
    assert operator_effects(aten.bernoulli.p).draws
    assert operator_effects(aten.index_select.default).may_fail
