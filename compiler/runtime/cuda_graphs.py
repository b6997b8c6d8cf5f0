"""A call that runs on fixed memory, recorded as a CUDA graph and launched again.

The first calls run as they are.  Then one is recorded: inputs that had the same address in all calls so far
(parameters, most often) are read where they are, others are copied to memory of the recording first.  Results are
copied out, so that no later call overwrites what the caller holds.  Where an input that is read in place comes from
another address, the call is recorded anew, with that input copied; after `MOST_RECORDINGS` it runs as it is for good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch

from ..base.events import FellBack, GraphRecorded, record
from .cuda_facts import forget_library_workspaces

WARM_CALLS = 2  # libraries make their workspaces, and kernels are loaded
MOST_RECORDINGS = 4
Call = Callable[..., tuple[object, ...]]
Replay = Callable[[], None]


class RecordingDevice(Protocol):
    """What records a call."""

    def __call__(self, call: Callable[[], tuple[object, ...]]) -> tuple[Replay, tuple[object, ...]]:
        """Record a call; return what launches it again, and its results, which each launch fills anew."""


def record_on_cuda(call: Callable[[], tuple[object, ...]]) -> tuple[Replay, tuple[object, ...]]:
    """Record a call on the device that is current, in memory of its own."""
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    forget_library_workspaces()
    try:
        with torch.cuda.graph(graph):
            results = call()
    finally:
        forget_library_workspaces()
    return graph.replay, results


@dataclass(slots=True)
class _Recording:
    """A recorded call.

    inputs: what the recording reads: tensors of its own where a call's are copied, None where they are read in place.
    addresses, layouts: of all inputs when it was recorded.
    """

    replay: Replay
    results: tuple[object, ...]
    inputs: list[torch.Tensor | None]
    addresses: list[int]
    layouts: list[object]


def _layouts(tensors: Sequence[torch.Tensor]) -> list[object]:
    return [(each.shape, each.stride(), each.dtype) for each in tensors]


@dataclass(slots=True)
class ReplayedCall:
    """A call with the meaning of `call`, recorded when it has been made twice; tensors of another layout go as before.

    device: what records.
    """

    call: Call
    device: RecordingDevice = record_on_cuda
    _seen: list[list[int]] = field(default_factory=list)
    _recording: _Recording | None = None
    _made: int = 0
    _moving: set[int] = field(default_factory=set)

    def __call__(self, *inputs: torch.Tensor) -> tuple[object, ...]:
        """Run it, by the recording where there is one."""
        if self._made > MOST_RECORDINGS:
            return self.call(*inputs)
        addresses = [each.data_ptr() for each in inputs]
        if self._recording is not None and self._recording.layouts != _layouts(inputs):
            return self.call(*inputs)
        if self._recording is None or not self._reads(addresses):
            if len(self._seen) < WARM_CALLS:
                self._seen.append(addresses)
                return self.call(*inputs)
            if not self._record(inputs, addresses):
                return self.call(*inputs)
        recording = self._recording
        assert recording is not None
        for own, given in zip(recording.inputs, inputs, strict=True):
            if own is not None:
                own.copy_(given)
        recording.replay()
        return tuple(each.clone() if isinstance(each, torch.Tensor) else each for each in recording.results)

    def _reads(self, addresses: Sequence[int]) -> bool:
        """Whether what the recording reads in place is where it was; what is not is copied from then on."""
        recording = self._recording
        assert recording is not None
        pairs = zip(recording.inputs, recording.addresses, addresses, strict=True)
        moved = {place for place, (own, then, now) in enumerate(pairs) if own is None and then != now}
        self._moving |= moved
        return not moved

    def _record(self, inputs: Sequence[torch.Tensor], addresses: list[int]) -> bool:
        """Record the call; False where that has been done too often, or fails."""
        self._made += 1
        self._recording = None  # its memory is given back before more is asked for
        if self._made > MOST_RECORDINGS:
            record(FellBack("cuda graph", f"recorded {MOST_RECORDINGS} times, and an input is elsewhere again"))
            return False
        for before in self._seen:
            self._moving |= {place for place, then in enumerate(before) if then != addresses[place]}
        own = [each.clone() if place in self._moving else None for place, each in enumerate(inputs)]
        given = [mine if mine is not None else each for mine, each in zip(own, inputs, strict=True)]
        try:
            replay, results = self.device(lambda: self.call(*given))
        except RuntimeError as error:  # no memory for it, or a library that cannot be recorded
            self._made = MOST_RECORDINGS + 1
            record(FellBack("cuda graph", f"it cannot be recorded: {error}".splitlines()[0]))
            return False
        if any(_layouts([each]) != _layouts([each.clone()]) for each in results if isinstance(each, torch.Tensor)):
            self._made = MOST_RECORDINGS + 1
            record(FellBack("cuda graph", "a result has gaps or repetitions in memory, which a copy has not"))
            return False
        self._recording = _Recording(replay, results, own, addresses, _layouts(inputs))
        record(GraphRecorded(len(self._moving), len(inputs) - len(self._moving)))
        return True
