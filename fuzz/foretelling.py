"""What an example of each fuzzer would reach, before it is compiled: cheap, so that several may be looked at."""

from itertools import pairwise

import torch

from .coverage.behaviours import Behaviours, opcode_pairs, operators_run
from .generated_source import forget_sources, functions_of
from .graph_programs.graph_program import ProgramBatch
from .guard_scenarios.scenarios import Scenario
from .python_programs.python_program import PythonProgram
from .transform_programs.programs import TransformProgram


def foretold_of_batch(batch: ProgramBatch) -> Behaviours:
    """Return the operators that eager runs at the first call, by type."""
    namespace = functions_of(batch.source())
    state = torch.random.get_rng_state()

    def run() -> None:
        for number in range(len(batch.programs)):
            namespace[f"f{number}"](*namespace[f"arguments_{number}_0"]())

    try:
        return operators_run(run)
    finally:
        torch.random.set_rng_state(state)
        forget_sources()


def foretold_of_text(program: PythonProgram) -> Behaviours:
    """Return the pairs of opcodes of a module and of its history."""
    return opcode_pairs("\n".join((program.module, "def history():\n    pass\n    " + "\n    ".join(program.history))))


def foretold_of_scenario(scenario: Scenario) -> Behaviours:
    """Return what is read beside what changes, which changes follow each other, and the pairs of opcodes."""
    changed = [event.slot for event in scenario.events if event.slot]
    read = [f"{slot.name} {slot.way}" for slot in scenario.slots if slot.way >= 0]
    found = {f"changes: {one} after {other}" for other, one in pairwise(changed)}
    found |= {f"changes: {event.slot} to {event.value}" for event in scenario.events if event.slot}
    found |= {f"changes: {one} while {two} is read" for one in changed for two in read}
    return opcode_pairs(scenario.source()) | found


def foretold_of_transforms(program: TransformProgram) -> Behaviours:
    """Return each operator under each transform, by the types of the inputs, and each transform in another."""
    nest = [level.transform for level in program.nest]
    kinds = {one.dtype for one in program.inputs}
    found = {f"operators: {step.operator} {kind} in {one}" for step in program.steps for kind in kinds for one in nest}
    found |= {f"changes: {outer} of {inner}" for inner, outer in pairwise(nest)}
    return frozenset(found | {f"changes: {one} compiled at {program.compiled}" for one in nest})
