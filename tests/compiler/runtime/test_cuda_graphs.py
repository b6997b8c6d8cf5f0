"""A recorded call has the meaning of the call, whatever becomes of its inputs; a stand-in takes the device's part."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch

from plumbline.compiler.base.events import FellBack, GraphRecorded, recording
from plumbline.compiler.runtime import cuda_graphs
from plumbline.compiler.runtime.cuda_graphs import MOST_RECORDINGS, WARM_CALLS, Replay, ReplayedCall


@dataclass
class StandIn:
    """Runs what it is given; a replay runs it again and writes over the same results, as a CUDA graph does."""

    recorded: int = 0
    replays: int = 0
    error: str = ""
    results: tuple[torch.Tensor, ...] = field(default=())

    def __call__(self, call: Callable[[], tuple[object, ...]]) -> tuple[Replay, tuple[object, ...]]:
        if self.error:
            raise RuntimeError(self.error)
        self.recorded += 1
        results = call()

        def replay() -> None:
            self.replays += 1
            for old, new in zip(results, call(), strict=True):
                assert isinstance(old, torch.Tensor)
                assert isinstance(new, torch.Tensor)
                old.copy_(new)

        return replay, results


def doubled(x: torch.Tensor, weight: torch.Tensor) -> tuple[object, ...]:
    return (x * weight, x + weight)


def check(call: ReplayedCall, x: torch.Tensor, weight: torch.Tensor) -> tuple[object, ...]:
    found = call(x, weight)
    for one, want in zip(found, doubled(x, weight), strict=True):
        torch.testing.assert_close(one, want)
    return found


def fresh(kept: list[torch.Tensor]) -> torch.Tensor:
    """Return a tensor of another address than all before it."""
    kept.append(torch.randn(4))
    return kept[-1]


def test_a_call_is_recorded_after_it_was_made_twice_and_nothing_is_overwritten() -> None:
    device, kept, weight = StandIn(), list[torch.Tensor](), torch.randn(4)
    call = ReplayedCall(doubled, device=device)
    with recording() as events:
        held = [(check(call, x := fresh(kept), weight), doubled(x, weight)) for _ in range(6)]
    assert (device.recorded, device.replays) == (1, 6 - WARM_CALLS)
    assert [event for event in events if isinstance(event, GraphRecorded)] == [GraphRecorded(copied=1, in_place=1)]
    for found, want in held:
        torch.testing.assert_close(found, want)
    weight.mul_(3)  # an update in place is seen
    check(call, fresh(kept), weight)


def test_an_input_that_moves_is_copied_from_then_on() -> None:
    device, x, weight = StandIn(), torch.randn(4), torch.randn(4)
    call = ReplayedCall(doubled, device=device)
    for _ in range(4):
        check(call, x, weight)
    other = torch.randn(4)
    for given in (other, x, other):
        check(call, given, weight)
    assert device.recorded == 2


def test_after_too_many_recordings_it_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    device, kept = StandIn(), list[torch.Tensor]()
    call = ReplayedCall(doubled, device=device)
    monkeypatch.setattr(cuda_graphs, "MOST_RECORDINGS", 1)
    x, weight = torch.randn(4), torch.randn(4)
    for _ in range(3):
        check(call, x, weight)
    with recording() as events:
        for _ in range(3):
            check(call, fresh(kept), fresh(kept))
    assert device.recorded == 1
    (told,) = [event.why for event in events if isinstance(event, FellBack)]
    assert told == "recorded 1 times, and an input is elsewhere again"
    assert MOST_RECORDINGS > 1


def test_another_layout_goes_as_before_and_leaves_the_recording() -> None:
    device, x, weight = StandIn(), torch.randn(4), torch.randn(4)
    call = ReplayedCall(doubled, device=device)
    for _ in range(3):
        check(call, x, weight)
    replays = device.replays
    check(call, torch.randn(8)[::2], weight)
    check(call, torch.randn(3, 4), weight)
    assert device.replays == replays
    check(call, x, weight)
    assert (device.recorded, device.replays) == (1, replays + 1)


@pytest.mark.parametrize("error", ["CUDA out of memory.", "operation not permitted when stream is capturing"])
def test_what_cannot_be_recorded_runs_as_it_is_and_says_why(error: str) -> None:
    device, x, weight = StandIn(error=error), torch.randn(4), torch.randn(4)
    call = ReplayedCall(doubled, device=device)
    with recording() as events:
        for _ in range(5):
            check(call, x, weight)
    assert [event.why for event in events if isinstance(event, FellBack)] == [f"it cannot be recorded: {error}"]


def test_a_result_with_gaps_is_not_recorded() -> None:
    x = torch.randn(4)
    call = ReplayedCall(lambda x: (torch.empty(8)[::2].copy_(x),), device=StandIn())
    with recording() as events:
        results = [call(x)[0] for _ in range(4)]
    assert [event.why for event in events if isinstance(event, FellBack)] == [
        "a result has gaps or repetitions in memory, which a copy has not"
    ]
    for result in results:
        assert isinstance(result, torch.Tensor)
        assert torch.equal(result, x)
        assert result.stride() == (2,)
