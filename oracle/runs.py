"""The runs of one judged call: forward, backward, shadow and live, each from the saved state."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from .comparison.aspects import observing
from .cotangents import COTANGENTS, Gradients, differentiable, gradients_of, leaves_of
from .noise.shadow import ShadowRun
from .quiet import quiet
from .state.argument_stand_ins import StandIns
from .state.run_outcome import ProgramEnd, RunOutcome, outcome_of
from .state.snapshot import Snapshot

JudgedProgram = Callable[..., Any]


class CallRuns:
    """Runs programs on one call's arguments; all but the live run start from, and return to, the saved state."""

    def __init__(self, snapshot: Snapshot, args: tuple[Any, ...], kwargs: Mapping[str, Any], seed: int) -> None:
        self.snapshot = snapshot
        self.args = args
        self.kwargs = dict(kwargs)
        self.seed = seed
        self.lost: list[str] = []

    def forward(self, program: JudgedProgram) -> RunOutcome:
        """Run once on stand-ins and describe what is left; sets `lost` to what cannot be rewound."""
        stand_ins = StandIns(self.args, self.kwargs, enabled=True)
        with quiet(), self._undone_if_interrupted():
            ended = _observed(program, stand_ins.args, stand_ins.kwargs)
        outcome = outcome_of(self.snapshot, ended, stand_ins)
        self.lost = self.snapshot.not_rewindable()
        self.snapshot.rewind()
        return outcome

    def gradients(self, program: JudgedProgram, paths: tuple[str, ...]) -> dict[str, Gradients | None]:
        """Return the gradients for every cotangent, each of a run of its own; none where there are no paths."""
        return {kind: self.backward(program, paths, kind) for kind in (COTANGENTS if paths else ())}

    def samples(self, program: JudgedProgram, count: int) -> dict[str, list[torch.Tensor]]:
        """Return the tensors of successive runs by path, each run with another seed."""
        samples: dict[str, list[torch.Tensor]] = {}
        for number in range(count):
            torch.manual_seed(self.seed + 1000 + number)
            for path, record in self.forward(program).tensors().items():
                samples.setdefault(path, []).append(record.value)
        return samples

    def backward(self, program: JudgedProgram, paths: tuple[str, ...], cotangent: str) -> Gradients | None:
        """Run forward, then backward from the outputs at these paths; None if one of them has no backward."""
        stand_ins = StandIns(self.args, self.kwargs, enabled=True)
        leaves = leaves_of(self.snapshot, stand_ins)
        with quiet(), self._undone_if_interrupted():
            ended = _run(program, stand_ins.args, stand_ins.kwargs)
            outcome = outcome_of(self.snapshot, ended, stand_ins)
            outputs = differentiable(outcome)
            gradients = None
            if ended.error is None and leaves and all(path in outputs for path in paths):
                gradients = gradients_of({path: outputs[path] for path in paths}, leaves, cotangent, self.seed)
        self.snapshot.rewind()
        return gradients

    def shadow(
        self, program: JudgedProgram, shadow: ShadowRun, paths: tuple[str, ...], cotangent: str | None
    ) -> dict[str, torch.Tensor]:
        """Run under shadow lanes and return live tensors by path: outputs and state, or gradients for a cotangent."""
        stand_ins = StandIns(self.args, self.kwargs, enabled=True)
        leaves = leaves_of(self.snapshot, stand_ins)
        with quiet(), self._undone_if_interrupted(), shadow:
            ended = _run(program, stand_ins.args, stand_ins.kwargs)
        if ended.error is not None:
            return {}
        records = outcome_of(self.snapshot, ended, stand_ins).tensors()
        tensors = {path: record.original for path, record in records.items()}
        if cotangent is None:
            return tensors
        outputs = {path: tensors[path] for path in paths if path in tensors}
        with quiet(), shadow:
            gradients = gradients_of(outputs, leaves, cotangent, self.seed)
        return {leaf: gradient for leaf, gradient in gradients.by_leaf.items() if gradient is not None}

    @contextlib.contextmanager
    def _undone_if_interrupted(self) -> Iterator[None]:
        """Rewind when the test is ended from outside: an interrupt, a time-out, a skip."""
        try:
            yield
        except BaseException:
            self.snapshot.rewind()
            raise

    def live(self, program: JudgedProgram) -> tuple[RunOutcome, Any]:
        """Run on the caller's own arguments, as if unobserved; nothing is rewound."""
        ended = _observed(program, self.args, self.kwargs)
        no_stand_ins = StandIns(self.args, self.kwargs, enabled=False)
        return outcome_of(self.snapshot, ended, no_stand_ins), ended.output


def _observed(program: JudgedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ProgramEnd:
    """Run with what the aspects want observed."""
    with observing() as observed:
        ended = _run(program, args, kwargs)
        return replace(ended, observed=observed())


def _run(program: JudgedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ProgramEnd:
    """Run and time; an Exception is part of the result, all else (interrupts, time-outs, skips) goes to the test."""
    started = time.perf_counter()
    try:
        output = program(*args, **kwargs)
    except Exception as error:
        return ProgramEnd(None, error, time.perf_counter() - started, {})
    return ProgramEnd(output, None, time.perf_counter() - started, {})
