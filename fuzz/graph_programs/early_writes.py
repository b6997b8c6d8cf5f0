"""A write to an output before its backward: refused where eager refuses it, and of no effect on the gradient elsewhere.

A backward that reads what the write has changed gives a wrong gradient and no error.  One that eager refuses may run
all the same, where it reads nothing that was written to: eager refuses some for what they save and do not read
(docs/limits.md).
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.graph import allow_mutation_on_saved_tensors

from plumbline.oracle.verdict import Verdict

from .quick_comparison import CallOutcome, gradient_difference, gradients_of, run_call

EARLY_WRITE = "early write"
"""The aspect of a finding."""


def has_history(outcome: CallOutcome) -> bool:
    """Return whether there is an output with a gradient."""
    return bool(_outputs(outcome))


def _outputs(outcome: CallOutcome) -> list[torch.Tensor]:
    """Return what has a gradient and no memory of an argument, a write to which is a write to the argument."""
    given = {one.untyped_storage()._cdata for one in outcome.arguments if isinstance(one, torch.Tensor)}
    tensors = [value for value in outcome.outputs if isinstance(value, torch.Tensor) and value.requires_grad]
    return [value for value in tensors if value.untyped_storage()._cdata not in given]


def difference_after_early_write(
    eager: tuple[CallOutcome, CallOutcome], compiled: tuple[CallOutcome, CallOutcome], seed: int
) -> str | None:
    """Return how the backwards of two runs of each program differ, of which the first is written to here.

    Where eager's own gradient changes, the write went through views into the history, and nothing is said.
    seed: of the cotangents; it also says which output is written to.
    """
    if eager[0].error is not None or not all(_could_write(one, seed) for one in (eager[0], compiled[0])):
        return None
    expected, actual = gradients_of(eager[0], seed), gradients_of(compiled[0], seed)
    if isinstance(actual, str):
        refused = not isinstance(expected, str) and not isinstance(gradients_of(compiled[1], seed), str)
        return f"the backward is refused after a write to an output ({actual}), eager's is not" if refused else None
    if not isinstance(expected, str) and gradient_difference(gradients_of(eager[1], seed), expected) is not None:
        return None
    changed = gradient_difference(gradients_of(compiled[1], seed), actual)
    return None if changed is None else "a write to an output changes the gradient"


def _could_write(outcome: CallOutcome, which: int) -> bool:
    outputs = _outputs(outcome)
    if not outputs:
        return False
    try:
        with torch.no_grad():
            outputs[which % len(outputs)].mul_(-3)
    except RuntimeError:
        return False  # an expanded tensor, or one of several views
    return True


def runs_where_eager_refuses(verdict: Verdict) -> bool:
    """Return whether all that a verdict says is that eager alone refuses a backward, for a write to what it saved."""
    return _all_say(verdict, lambda sentence: sentence.startswith("raises nothing") and _SAID in sentence)


def refuses_where_eager_runs(verdict: Verdict) -> bool:
    """Return whether all that a verdict says is that eager alone runs a backward, after a write to what was saved."""
    return _all_say(verdict, lambda sentence: sentence.endswith("eager raises nothing") and _SAID in sentence)


def _all_say(verdict: Verdict, said: Callable[[str], bool]) -> bool:
    failing = [finding for finding in verdict.findings if finding.kind.fails]
    return bool(failing) and all(
        finding.aspect == "exceptions" and finding.where.endswith("backward") and said(finding.sentence)
        for finding in failing
    )


_SAID = "has been modified by an inplace operation"
_CLOSE = 1e-3


def gradient_is_right(
    program: Callable[..., Any], compiled: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]], seed: int
) -> bool:
    """Return whether a gradient that eager refuses is that of the values before the write: torch can keep copies."""
    with allow_mutation_on_saved_tensors():
        expected = gradients_of(run_call(program, arguments(), seed), seed)
    actual = gradients_of(run_call(compiled, arguments(), seed), seed)
    if isinstance(expected, str) or isinstance(actual, str) or len(expected) != len(actual):
        return False
    return all(_close(one, other) for one, other in zip(expected, actual, strict=True))


def eager_reads_what_was_written(
    program: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]], seed: int
) -> bool:
    """Return whether eager's own gradient is another where torch keeps copies of what is saved: its error is missing.

    Views without a link to their base, which `kron` of numbers saves, do not see that the base was written to.
    """
    with allow_mutation_on_saved_tensors():
        right = gradients_of(run_call(program, arguments(), seed), seed)
    eager = gradients_of(run_call(program, arguments(), seed), seed)
    if isinstance(right, str) or isinstance(eager, str):
        return False
    return len(right) == len(eager) and not all(map(_close, right, eager))


def _close(expected: torch.Tensor | None, actual: torch.Tensor | None) -> bool:
    if expected is None or actual is None:
        return expected is actual
    same_form = expected.shape == actual.shape and expected.dtype == actual.dtype
    return same_form and torch.allclose(expected, actual, rtol=_CLOSE, atol=_CLOSE, equal_nan=True)


def demand_equal_after_write(
    function: Callable[..., Any], compiled: Callable[..., Any], arguments: Callable[[], tuple[Any, ...]], seed: int
) -> None:
    """Write to an output before the backward and compare the backwards; print how they differ and exit with 1.

    What the scripts of saved failures call.
    """
    eager = run_call(function, arguments(), seed), run_call(function, arguments(), seed)
    mine = run_call(compiled, arguments(), seed), run_call(compiled, arguments(), seed)
    sentence = difference_after_early_write(eager, mine, seed)
    sys.stdout.write(f"{sentence or 'as in eager'}\n")
    if sentence is not None:
        sys.exit(1)
