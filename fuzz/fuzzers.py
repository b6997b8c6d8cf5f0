"""The fuzzers, each one object: what it draws, how an example is tried, simplified, written and read back."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.harness.compilers import CompilerUnderTest
from plumbline.oracle.verdict import Verdict

from .coverage.behaviours import Behaviours
from .findings import TrialResult
from .foretelling import foretold_of_batch, foretold_of_scenario, foretold_of_text, foretold_of_transforms
from .graph_programs.batch_trial import try_batch
from .graph_programs.departing_stage import departing_stage
from .graph_programs.drawing import draw_batch
from .graph_programs.graph_program import ProgramBatch, check_batch
from .graph_programs.graph_simplification import simpler_batches
from .guard_scenarios.scenario_trial import try_scenario
from .guard_scenarios.scenarios import Scenario, check_scenario, scenarios, simpler_scenarios
from .program_data import from_plain
from .python_programs.program_source import draw_program
from .python_programs.python_program import PythonProgram, check_python_program
from .python_programs.python_trial import try_python_program
from .python_programs.script import python_program_script
from .python_programs.shrinking import simpler_python_programs
from .scripts import batch_script, program_script, scenario_script
from .transform_programs.generation import programs
from .transform_programs.program_trial import import_for_transforms, try_program
from .transform_programs.programs import TransformProgram, check_program
from .transform_programs.simplification import simpler_programs

Avoided = Callable[[frozenset[str]], bool]
PROGRAMS_IN_A_BATCH = 10
LAW_EVERY = 4
"""Laws look at eager alone, which changes with torch only: every fourth program is enough."""


@dataclass(frozen=True, slots=True)
class Fuzzer:
    """One fuzzer.

    draw: draws an example; it may leave out programs whose names are avoided.  attempt: judges one example.
    simpler: smaller variants of a shrunk one.
    script: an example as a stand-alone script.  read: plain data to an example; raises UserError.
    foretell: what an example would reach, before it is tried, see coverage/behaviours.py.
    departing_stage: the stage of our own compiler that departs first under a backend, in words; empty where none does.
    prepare: does once what each process that tries examples would do again.
    """

    name: str
    draw: Callable[[random.Random, Avoided], Any]
    attempt: Callable[[Any, CompilerUnderTest, str], TrialResult]
    simpler: Callable[[Any], Iterable[Any]]
    script: Callable[[Any, str, str, Verdict], str]
    read: Callable[[object], Any]
    foretell: Callable[[Any], Behaviours]
    departing_stage: Callable[[Any, str], str] = lambda example, backend: ""
    prepare: Callable[[], None] = lambda: None


def _try_program(program: TransformProgram, compiler: CompilerUnderTest, backend: str) -> TrialResult:
    laws = (
        sum(spec.seed for spec in program.inputs) % LAW_EVERY == 0
    )  # chosen by the program, so that a replay does the same
    return try_program(program, compiler, backend, laws=laws)


Example = TypeVar("Example")


def _reader(kind: type[Example], check: Callable[[Example], None]) -> Callable[[object], Example]:
    """Return what reads examples of a kind from plain data; raises UserError for what is not one."""

    def read(plain: object) -> Example:
        example = from_plain(kind, plain)
        check(example)
        return example

    return read


def _draw_program(draw: random.Random, avoided: Avoided) -> TransformProgram:
    del avoided  # one program is one example: the campaign draws again
    return programs(draw)


def _draw_scenario(draw: random.Random, avoided: Avoided) -> Scenario:
    del avoided
    return scenarios(draw)


def _draw_python_program(draw: random.Random, avoided: Avoided) -> PythonProgram:
    del avoided
    return draw_program(draw)


def _draw_batch(draw: random.Random, avoided: Avoided) -> ProgramBatch:
    return draw_batch(draw, PROGRAMS_IN_A_BATCH, avoided)


FUZZERS = {
    "transforms": Fuzzer(
        "transforms",
        _draw_program,
        _try_program,
        simpler_programs,
        program_script,
        _reader(TransformProgram, check_program),
        foretold_of_transforms,
        prepare=import_for_transforms,
    ),
    "guards": Fuzzer(
        "guards",
        _draw_scenario,
        try_scenario,
        simpler_scenarios,
        scenario_script,
        _reader(Scenario, check_scenario),
        foretold_of_scenario,
    ),
    "programs": Fuzzer(
        "programs",
        _draw_python_program,
        try_python_program,
        simpler_python_programs,
        python_program_script,
        _reader(PythonProgram, check_python_program),
        foretold_of_text,
    ),
    "graphs": Fuzzer(
        "graphs",
        _draw_batch,
        try_batch,
        simpler_batches,
        batch_script,
        _reader(ProgramBatch, check_batch),
        foretold_of_batch,
        departing_stage,
    ),
}


def find_fuzzer(name: str) -> Fuzzer:
    """Return the fuzzer of this name; raises UserError for an unknown one."""
    if name not in FUZZERS:
        raise UserError(f"unknown fuzzer {name!r}", hint=f"choose from {', '.join(FUZZERS)}")
    return FUZZERS[name]
