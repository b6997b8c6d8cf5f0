"""The runs of one judged call: forward, backward, shadow and live, each from the saved state."""

import contextlib
import contextvars
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from .comparison.aspects import observing
from .comparison.compare_exceptions import is_compiler_failure
from .cotangents import (
    DOUBLE,
    FullRun,
    Gradients,
    backwards_of,
    differentiable,
    earlier_steps,
    gradients_of,
    handed_over,
    leaves_of,
    may_be_held,
)
from .freed_memory import keep_freed_memory, return_freed_memory, without_frames
from .noise.light_lane import LightLane
from .noise.shadow import ShadowRun
from .quiet import quiet
from .state.argument_stand_ins import StandIns
from .state.number_reads import NumberReads
from .state.run_outcome import ProgramEnd, RunOutcome, memory_taken_apart, outcome_of
from .state.snapshot import Snapshot
from .user_overrides import with_overrides

JudgedProgram = Callable[..., Any]

SMALL_CALL = 1 << 20
"""Bytes of reached tensors up to which what a run takes and frees is not worth keeping."""

HUGE_CALL = 512 << 20
"""Bytes of reached tensors from which what a run has freed is handed back after each."""


class CallRuns:
    """Runs programs on one call's arguments; all but the live run start from, and return to, the saved state."""

    def __init__(
        self,
        snapshot: Snapshot,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        seed: int,
        backward_turn: int | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.earlier = earlier_steps(snapshot)
        self.ended: ProgramEnd | None = None  # how the live run ended, once there was one
        self.args = args
        self.kwargs = dict(kwargs)
        self.seed = seed
        self.backward_turn = backward_turn
        self.lost: list[str] = []
        self.reached_bytes = sum(saved.nbytes for saved in snapshot.storages.values())
        if self.reached_bytes > SMALL_CALL:
            keep_freed_memory()

    def forward(self, program: JudgedProgram) -> RunOutcome:
        """Run once on stand-ins and describe what is left; sets `lost` to what cannot be rewound."""
        return self.full(program, lambda outcome: ()).outcome

    def full(
        self,
        program: JudgedProgram,
        paths_of: Callable[[RunOutcome], Sequence[str]],
        kinds: Sequence[str] | None = None,
        *,
        eager: bool = False,
        like: FullRun | None = None,
    ) -> FullRun:
        """Run once on stand-ins, describe what is left, run the backwards, and describe what these left.

        paths_of: from which outputs; none means no backward.  kinds: these backwards instead of all; the gradients of
        the last one are held however large they are.  eager: nothing is compiled, so the run can be watched.
        like: a run of the same outputs; gradients that are its own again are not held beside them, but for those of
        the first backward, which a later one may write over.  Sets `lost` to what cannot be rewound.
        """
        stand_ins = StandIns(self.args, self.kwargs, enabled=True)
        gradients: dict[str, Gradients | None] = {}
        after: RunOutcome | None = None
        with quiet(), self._undone_if_interrupted():
            with stand_ins.watched() if eager else contextlib.nullcontext():
                ended = _apart(_observed, program, stand_ins.args, stand_ins.kwargs)
            outcome = outcome_of(self.snapshot, ended, stand_ins)  # with what the frames hold, as in the live run
            if isinstance(ended.error, Exception) and not is_compiler_failure(ended.error):
                without_frames(ended.error, sys.exception())  # a compiler's failure is told from others by its place
            self.lost = [
                *self.snapshot.not_rewindable(),
                *stand_ins.left_the_call(outcome.error),
                *self.snapshot.ended(ended.output),
                *memory_taken_apart(self.snapshot, outcome.changes, stand_ins),
            ]
            paths = tuple(paths_of(outcome))
            if paths and outcome.error is None:
                gradients, after = self._backwards(
                    outcome, paths, stand_ins, kinds, {} if like is None else like.gradients
                )
        self.snapshot.rewind(None if DOUBLE in gradients else (after or outcome).changes)
        for record in outcome.tensors().values():
            record.let_go_of_history()
        self._free()
        return FullRun(outcome, paths, gradients, after)

    def _backwards(
        self,
        outcome: RunOutcome,
        paths: Sequence[str],
        stand_ins: StandIns,
        wanted: Sequence[str] | None,
        known: Mapping[str, Gradients | None],
    ) -> tuple[dict[str, Gradients | None], RunOutcome]:
        """Run the backwards on the graph of one run; None for each if an output has no backward.

        What they left is described before the backward of gradients, which asks for histories that no program saw.
        """
        leaves, outputs = leaves_of(self.snapshot, stand_ins), differentiable(outcome)
        kinds = backwards_of(paths, leaves, self.seed, self.backward_turn) if wanted is None else wanted
        held = tuple(kinds) if may_be_held(leaves) else tuple(wanted or ())[-1:]
        found: dict[str, Gradients | None] = dict.fromkeys(kinds)
        after: RunOutcome | None = None

        def left() -> RunOutcome:
            return outcome_of(self.snapshot, ProgramEnd(None, None, 0.0, observed()), stand_ins)

        with observing() as observed:
            if leaves and all(path in outputs for path in paths):
                chosen = {path: outputs[path] for path in paths}
                for kind in kinds:
                    after = left() if kind == DOUBLE else after
                    gradients = gradients_of(chosen, leaves, kind, self.seed, self.earlier)
                    before = known.get(kind) if kind not in (kinds[0], DOUBLE) else None
                    if before is not None and before.repeats(gradients):
                        found[kind] = before
                    else:
                        found[kind] = gradients if kind in held else gradients.let_go()
                    del gradients  # before those of the next kind are made
            return found, after or left()

    def reads_numbers(self, program: JudgedProgram) -> bool:
        """Return whether a program reads numbers out of tensors."""
        reads = NumberReads()

        def noted(*args: Any, **kwargs: Any) -> Any:
            with reads:
                return program(*args, **kwargs)

        self.forward(noted)
        return reads.seen

    def samples(self, program: JudgedProgram, count: int) -> dict[str, list[torch.Tensor]]:
        """Return the tensors of successive runs by path, each run with another seed."""
        samples: dict[str, list[torch.Tensor]] = {}
        for number in range(count):
            torch.manual_seed(self.seed + 1000 + number)
            for path, record in self.forward(program).tensors().items():
                samples.setdefault(path, []).append(record.value)
        return samples

    def shadow(
        self,
        program: JudgedProgram,
        shadow: ShadowRun,
        paths: tuple[str, ...],
        wanted: Sequence[str | None],
        keep: Callable[[str | None, dict[str, torch.Tensor]], None],
    ) -> None:
        """Run under shadow lanes, forward and the wanted backwards on one graph, and hand over live tensors by path.

        wanted: None for outputs and state, or the kind of a backward.  keep: gets them with that.
        """
        stand_ins = StandIns(self.args, self.kwargs, enabled=True)
        leaves = leaves_of(self.snapshot, stand_ins)
        with quiet(), self._undone_if_interrupted(), shadow:
            ended = _apart(run_program, program, stand_ins.args, stand_ins.kwargs)
        if ended.error is not None:
            return
        tensors = outcome_of(self.snapshot, ended, stand_ins).live_tensors()
        if None in wanted:  # a backward may write to what the program has returned
            keep(None, tensors)
        outputs = {path: tensors[path] for path in paths if path in tensors}
        for kind in wanted:
            if kind is None:
                continue
            with quiet(), shadow:
                gradients = gradients_of(outputs, leaves, kind, self.seed, self.earlier).by_leaf
            keep(kind, {leaf: gradient for leaf, gradient in gradients.items() if gradient is not None})

    def followed(
        self,
        program: JudgedProgram,
        lane: LightLane,
        paths: tuple[str, ...],
        cotangents: Sequence[str],
        keep: Callable[[str | None, dict[str, torch.Tensor]], None],
        take: Callable[[str, torch.Tensor], None] | None = None,
    ) -> None:
        """Run beside a lane, forward and for each cotangent backward, and hand over live tensors by path.

        keep: gets outputs and state with None, before the backwards, then the gradients with each cotangent; it may
        empty the dict as it goes, so that no more is held than it wants.
        take: gets gradients of leaves one by one instead, as soon as each is complete; they are held no longer.
        """
        stand_ins = StandIns(self.args, self.kwargs, enabled=True)
        leaves = leaves_of(self.snapshot, stand_ins)
        with quiet(), self._undone_if_interrupted():
            with lane:
                ended = _apart(run_program, program, stand_ins.args, stand_ins.kwargs)
            if ended.error is None:
                tensors = outcome_of(self.snapshot, ended, stand_ins).live_tensors()
                keep(None, tensors)
                outputs = {path: tensors[path] for path in paths if path in tensors}
                for cotangent in cotangents if len(outputs) == len(paths) else ():
                    with lane, handed_over(leaves if take is not None else {}, take or _nowhere) as taken:
                        found = gradients_of(outputs, leaves, cotangent, self.seed, self.earlier).by_leaf
                    if cotangent == cotangents[-1]:
                        outputs.clear()
                    rest = [leaf for leaf, each in found.items() if each is not None and leaf not in taken]
                    keep(cotangent, {leaf: each for leaf in rest if (each := found.pop(leaf)) is not None})
        self.snapshot.rewind()
        self._free()

    def _free(self) -> None:
        """Hand back what a run of a huge call has freed, its graph above all."""
        if self.reached_bytes > HUGE_CALL:
            return_freed_memory()

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
        self.ended = ended = _observed(program, self.args, self.kwargs, live=True)
        no_stand_ins = StandIns(self.args, self.kwargs, enabled=False)
        return outcome_of(self.snapshot, ended, no_stand_ins, live=True), ended.output


def _nowhere(name: str, gradient: torch.Tensor) -> None:
    """Take no gradient."""


def _apart(run: Callable[..., ProgramEnd], *given: Any) -> ProgramEnd:
    """Run in a context of its own: what the program sets of context variables ends with it."""
    return contextvars.copy_context().run(run, *given)


def _observed(
    program: JudgedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, live: bool = False
) -> ProgramEnd:
    """Run with what the aspects want observed."""
    with observing(live=live) as observed:
        ended = run_program(program, args, kwargs)
        return replace(ended, observed=observed())


def run_program(program: JudgedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ProgramEnd:
    """Run and time; an Exception is part of the result, all else (interrupts, time-outs, skips) goes to the test."""
    started = time.perf_counter()
    try:
        with with_overrides():
            output = program(*args, **kwargs)
    except Exception as error:
        return ProgramEnd(None, error, time.perf_counter() - started, {})
    return ProgramEnd(output, None, time.perf_counter() - started, {})
