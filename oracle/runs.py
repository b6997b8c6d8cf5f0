"""The runs of one judged call: forward, backward, shadow and live, each from the saved state."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from .cotangents import Gradients, differentiable, gradients_of, leaves_of
from .noise.shadow import ShadowRun
from .quiet import quiet
from .record import RunOutcome, outcome_of
from .state.argument_stand_ins import StandIns
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
        """Run once on stand-ins and describe what is left; notes in `lost` what cannot be rewound."""
        stand_ins = StandIns(self.args, self.kwargs, wanted=True)
        with quiet(), self._undone_if_interrupted():
            output, error, seconds = _call(program, stand_ins.args, stand_ins.kwargs)
        outcome = outcome_of(self.snapshot, output, error, stand_ins, seconds)
        self.lost = self.snapshot.not_rewindable()
        self.snapshot.rewind()
        return outcome

    def backward(self, program: JudgedProgram, wanted: tuple[str, ...], cotangent: str) -> Gradients | None:
        """Run forward, then backward from the outputs at the paths `wanted`; None if one has no backward."""
        stand_ins = StandIns(self.args, self.kwargs, wanted=True)
        leaves = leaves_of(self.snapshot, stand_ins)
        with quiet(), self._undone_if_interrupted():
            output, error, seconds = _call(program, stand_ins.args, stand_ins.kwargs)
            outcome = outcome_of(self.snapshot, output, error, stand_ins, seconds)
            live = differentiable(outcome)
            gradients = None
            if error is None and leaves and all(path in live for path in wanted):
                outputs = {path: live[path] for path in wanted}
                gradients = gradients_of(outputs, leaves, cotangent, self.seed)
        self.snapshot.rewind()
        return gradients

    def shadow(
        self, program: JudgedProgram, shadow: ShadowRun, wanted: tuple[str, ...], cotangent: str | None
    ) -> dict[str, torch.Tensor]:
        """Run under shadow lanes and return live tensors by path: outputs and state, or gradients for a cotangent."""
        stand_ins = StandIns(self.args, self.kwargs, wanted=True)
        leaves = leaves_of(self.snapshot, stand_ins)
        tensors: dict[str, torch.Tensor] = {}
        with quiet(), self._undone_if_interrupted(), shadow:
            output, error, _ = _call(program, stand_ins.args, stand_ins.kwargs)
        if error is None:
            outcome = outcome_of(self.snapshot, output, error, stand_ins, 0.0)
            tensors = {path: record.original for path, record in outcome.tensors().items()}
            if cotangent is not None:
                outputs = {path: tensors[path] for path in wanted if path in tensors}
                with quiet(), shadow:
                    gradients = gradients_of(outputs, leaves, cotangent, self.seed)
                tensors = {path: grad for path, grad in gradients.by_leaf.items() if grad is not None}
        return tensors

    @contextlib.contextmanager
    def _undone_if_interrupted(self) -> Iterator[None]:
        """Leave nothing behind of a run that did not end by itself."""
        try:
            yield
        except BaseException:
            self.snapshot.rewind()
            raise

    def live(self, program: JudgedProgram) -> tuple[RunOutcome, Any]:
        """Run on the caller's own arguments, as if nobody had looked; nothing is rewound."""
        output, error, seconds = _call(program, self.args, self.kwargs)
        nobody = StandIns(self.args, self.kwargs, wanted=False)
        return outcome_of(self.snapshot, output, error, nobody, seconds), output


def _call(
    program: JudgedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, BaseException | None, float]:
    """Call and time; an Exception is part of the result, all else (interrupts, time-outs, skips) goes to the test."""
    started = time.perf_counter()
    try:
        output = program(*args, **kwargs)
    except Exception as error:
        return None, error, time.perf_counter() - started
    return output, None, time.perf_counter() - started
