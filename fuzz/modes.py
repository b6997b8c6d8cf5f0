"""The two kinds of campaign, each as one object: what it draws, how it tries, shrinks further, and is read back."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.harness.compilers import CompilerUnderTest
from plumbline.oracle.verdict import Verdict

from .findings import Tried
from .generation import programs
from .guards import try_scenario
from .program_data import from_plain
from .programs import Program, check_program
from .scenarios import Scenario, check_scenario, scenarios, simpler_scenarios
from .scripts import program_script, scenario_script
from .simplification import simpler_programs
from .transforms import try_program

LAW_EVERY = 4
"""Laws look at eager alone, which changes with torch only: every fourth program is enough."""


@dataclass(frozen=True, slots=True)
class Mode:
    """One kind of campaign.

    examples: what hypothesis draws.  attempt: judges one example.  simpler: smaller variants of a shrunk one.
    script: an example as a stand-alone script.  read: an example from plain data, or UserError.
    """

    name: str
    examples: st.SearchStrategy[Any]
    attempt: Callable[[Any, CompilerUnderTest, str], Tried]
    simpler: Callable[[Any], Iterable[Any]]
    script: Callable[[Any, str, str, Verdict], str]
    read: Callable[[object], Any]


def _try_program(program: Program, compiler: CompilerUnderTest, backend: str) -> Tried:
    laws = sum(spec.seed for spec in program.inputs) % LAW_EVERY == 0  # by the program, so that replays agree
    return try_program(program, compiler, backend, laws=laws)


def _read_program(plain: object) -> Program:
    program = from_plain(Program, plain)
    check_program(program)
    return program


def _read_scenario(plain: object) -> Scenario:
    scenario = from_plain(Scenario, plain)
    check_scenario(scenario)
    return scenario


MODES = {
    "transforms": Mode("transforms", programs(), _try_program, simpler_programs, program_script, _read_program),
    "guards": Mode("guards", scenarios(), try_scenario, simpler_scenarios, scenario_script, _read_scenario),
}


def find_mode(name: str) -> Mode:
    """Return the mode of this name; raises UserError for an unknown one."""
    if name not in MODES:
        raise UserError(f"unknown fuzzer {name!r}", hint=f"choose from {', '.join(MODES)}")
    return MODES[name]
