"""The fuzzers, each one object: what it draws, how an example is tried, simplified, written and read back."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.harness.compilers import CompilerUnderTest
from plumbline.oracle.verdict import Verdict

from .findings import TrialResult
from .guard_scenarios.scenario_trial import try_scenario
from .guard_scenarios.scenarios import Scenario, check_scenario, scenarios, simpler_scenarios
from .program_data import from_plain
from .python_programs.generation import python_programs
from .python_programs.program_trial import try_python_program
from .python_programs.programs import PythonProgram, check_python_program
from .python_programs.script import python_program_script
from .python_programs.shrinking import simpler_python_programs
from .scripts import program_script, scenario_script
from .transform_programs.generation import programs
from .transform_programs.program_trial import try_program
from .transform_programs.programs import TransformProgram, check_program
from .transform_programs.simplification import simpler_programs

LAW_EVERY = 4
"""Laws look at eager alone, which changes with torch only: every fourth program is enough."""


@dataclass(frozen=True, slots=True)
class Fuzzer:
    """One fuzzer.

    examples: what hypothesis draws.  attempt: judges one example.  simpler: smaller variants of a shrunk one.
    script: an example as a stand-alone script.  read: plain data to an example; raises UserError.
    """

    name: str
    examples: st.SearchStrategy[Any]
    attempt: Callable[[Any, CompilerUnderTest, str], TrialResult]
    simpler: Callable[[Any], Iterable[Any]]
    script: Callable[[Any, str, str, Verdict], str]
    read: Callable[[object], Any]


def _try_program(program: TransformProgram, compiler: CompilerUnderTest, backend: str) -> TrialResult:
    laws = (
        sum(spec.seed for spec in program.inputs) % LAW_EVERY == 0
    )  # chosen by the program, so that a replay does the same
    return try_program(program, compiler, backend, laws=laws)


def _read_program(plain: object) -> TransformProgram:
    program = from_plain(TransformProgram, plain)
    check_program(program)
    return program


def _read_scenario(plain: object) -> Scenario:
    scenario = from_plain(Scenario, plain)
    check_scenario(scenario)
    return scenario


def _read_python_program(plain: object) -> PythonProgram:
    program = from_plain(PythonProgram, plain)
    check_python_program(program)
    return program


FUZZERS = {
    "transforms": Fuzzer("transforms", programs(), _try_program, simpler_programs, program_script, _read_program),
    "guards": Fuzzer("guards", scenarios(), try_scenario, simpler_scenarios, scenario_script, _read_scenario),
    "programs": Fuzzer(
        "programs",
        python_programs(),
        try_python_program,
        simpler_python_programs,
        python_program_script,
        _read_python_program,
    ),
}


def find_fuzzer(name: str) -> Fuzzer:
    """Return the fuzzer of this name; raises UserError for an unknown one."""
    if name not in FUZZERS:
        raise UserError(f"unknown fuzzer {name!r}", hint=f"choose from {', '.join(FUZZERS)}")
    return FUZZERS[name]
