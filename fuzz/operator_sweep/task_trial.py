"""One task in the child process: its cases prepared, screened in eager, and tried."""

import contextlib
import random
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from plumbline.oracle.harness.compilers import CompilerUnderTest

from .argument_trees import tensors_of
from .case_trial import CaseFault, Outcome, Runnable, Trial
from .cases import SweepCase, SweepTask, read_case, seed_of
from .contexts import BY_NAME, CONTEXTS, ERROR_INPUT
from .module_cases import module_cases, module_program
from .prepared_cases import PreparedCase, Sample, error_samples_of, prepare, program_of, samples_of

BATCH = 24
"""Cases in one compiled function at most: the judge reports forty differences, and a C file stays small."""

EAGER = "eager:"
"""Starts what the child says while eager runs: if it dies there, that is no fault of a compiler."""

SMALLER_SAMPLES = 6
"""Samples that are tried in place of one that fails, the smallest first."""

MOST_REFUSED = 12
"""Calls of a task that eager refuses are tried one by one: so many, each of another context or kind of error."""


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """What is asked of the child.

    samples: of the operator, how many.  only: the names of the cases to try, empty for those that the seed draws.
    listed: only name the cases, and try none.  without: the names of cases that end the process in eager.
    """

    task: SweepTask
    samples: int
    seed: int
    only: tuple[str, ...] = ()
    listed: bool = False
    without: tuple[str, ...] = ()


def try_task(request: TaskRequest, compiler: CompilerUnderTest, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the row of a task as plain data: counts of verdicts, faults, seconds of CPU time."""
    started = _cpu_seconds()
    begun = time.monotonic()
    task = request.task
    say(f"{EAGER} {task.key} samples")
    works, refused, damaging = _screened(request, say)
    outcome = Outcome()
    if not request.listed:
        trial = Trial(task, compiler, module_program if task.is_module else operator_program, say)
        for start in range(0, len(works), BATCH):
            outcome.include(trial.together(works[start : start + BATCH]))
        for case in refused:
            outcome.include(trial.alone(case))
        if not request.only and not task.is_module:
            outcome.faults = [_with_smaller_sample(fault, trial, request) for fault in outcome.faults]
    return {
        "task": task.key,
        "names": [one.case.key for one in (*works, *refused)] if request.listed else [],
        "cases": outcome.cases,
        "refused": len(refused),
        "kinds": outcome.kinds,
        "vacuous": outcome.vacuous,
        "breaks": outcome.breaks,
        "faults": [asdict(fault) for fault in outcome.faults],
        **({"eager_died": damaging} if damaging else {}),
        "cpu_seconds": round(_cpu_seconds() - started, 3),
        "seconds": round(time.monotonic() - begun, 3),
    }


def _with_smaller_sample(fault: CaseFault, trial: Trial, request: TaskRequest) -> CaseFault:
    """Return the fault as a smaller sample of the operator shows it, if one of a few does."""
    case = read_case(fault.case)
    if fault.together or case.context == "error_input":
        return fault
    samples = samples_of(request.task)
    sizes = [sum(tensor.numel() for tensor in tensors_of((one.args, one.kwargs))) for one in samples]
    smaller = [number for number in range(len(samples)) if sizes[number] < sizes[case.sample]]
    for number in sorted(smaller, key=lambda number: sizes[number])[:SMALLER_SAMPLES]:
        prepared = prepare(replace(case, sample=number), samples[number])
        if prepared is None:
            continue
        for found in trial.alone(prepared).faults:
            if found.same_fault(fault):
                return found
    return fault


def operator_program(cases: Sequence[PreparedCase]) -> Runnable:
    """Return cases of operators as one program."""
    return Runnable(
        tuple(prepared.case.key for prepared in cases),
        program_of(cases),
        lambda: [prepared.fresh_inputs() for prepared in cases],
    )


def _screened(request: TaskRequest, say: Callable[[str], None]) -> tuple[list[Any], list[Any], list[str]]:
    """Run every case in eager; return those that work, some of those that eager refuses, and the names of the rest.

    The rest are those in which eager itself writes outside the memory of the inputs.
    """
    if request.task.is_module:
        cases: list[Any] = module_cases(request.task)
        build: Callable[[Sequence[Any]], Runnable] = module_program
    else:
        cases = list(prepared_cases(request))
        build = operator_program
    works: list[Any] = []
    refused: list[Any] = []
    damaging: list[str] = []
    seen: set[tuple[str, str, str]] = set()
    for prepared in cases:
        name = prepared.case.key
        if name in request.without or (request.only and name not in request.only):
            continue
        say(f"{EAGER} {name}")
        runnable = build([prepared])
        if name not in request.only and _damages(prepared, runnable):
            damaging.append(name)
            continue
        try:
            arguments = runnable.arguments()
            results = runnable.program(arguments)
        except Exception as error:
            kind = (prepared.case.context, type(error).__name__, str(error)[:20])
            if request.only or (kind not in seen and len(refused) < MOST_REFUSED):
                seen.add(kind)
                refused.append(prepared)
        else:
            _run_backward(results, arguments)
            works.append(prepared)
    return works, refused, damaging


def _damages(prepared: Any, runnable: Runnable) -> bool:
    """Return whether eager writes outside its inputs: looked for where a context gives them other sizes."""
    if not isinstance(prepared, PreparedCase) or BY_NAME[prepared.case.context].change is None:
        return False
    return prepared.writes_beyond(runnable.program)


def _run_backward(results: Any, arguments: Any) -> None:
    """Run eager's backward, which may end the process; what it raises is compared later."""
    outputs = [tensor for tensor in tensors_of(results) if tensor.requires_grad and tensor.grad_fn is not None]
    leaves = [tensor for tensor in tensors_of(arguments) if tensor.requires_grad]
    if outputs and leaves:
        with contextlib.suppress(Exception):
            torch.autograd.grad(outputs, leaves, [torch.ones_like(tensor) for tensor in outputs], allow_unused=True)


FRUITFUL = ("special_values", "unsupported_dtype", "far_index")
"""Contexts that depend on what else a sample passes; where an operator has none of it, they cost nothing."""


def prepared_cases(request: TaskRequest) -> list[PreparedCase]:
    """Return the cases of an operator that are asked for, or drawn, and that apply."""
    task = request.task
    samples = samples_of(task)
    errors = error_samples_of(task) if task.dtype == "float32" else []
    if request.only:
        cases = [read_case(name) for name in request.only]
    else:
        cases = _drawn(task, samples, request)
        cases += [SweepCase(task, number, ERROR_INPUT) for number in range(len(errors))]
    prepared = []
    for case in cases:
        of = errors if case.context == ERROR_INPUT else samples
        if case.sample < len(of):
            prepared.append(prepare(case, of[case.sample]))
    return [one for one in prepared if one is not None]


def _drawn(task: SweepTask, samples: Sequence[Sample], request: TaskRequest) -> list[SweepCase]:
    """Return one sample in every context, and others alone, with special elements and in two more contexts each."""
    contexts = [context.name for context in CONTEXTS if context.name != ERROR_INPUT]
    usual = [name for name in contexts[1:] if name not in FRUITFUL]
    draw = random.Random(seed_of(request.seed, task.operator, task.dtype))
    numbers = list(range(len(samples)))
    draw.shuffle(numbers)
    numbers.sort(key=lambda number: not _has_dimensions(samples[number]))
    cases = [SweepCase(task, numbers[0], name) for name in contexts] if numbers else []
    others = numbers[1:]
    draw.shuffle(others)
    for number in others[: request.samples - 1]:
        cases += [SweepCase(task, number, name) for name in ("alone", *FRUITFUL, *draw.sample(usual, 2))]
    return cases


def _has_dimensions(sample: Sample) -> bool:
    first = sample.args[0]
    return isinstance(first, torch.Tensor) and first.dim() > 0 and first.numel() > 1


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of the C compilers that it started."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)
