"""A failure as a stand-alone Python script: the judge compares the program eager and compiled, call after call.

It exits with 1 if a call differs from eager's in anything that the judge looks at, exceptions among it.
"""

from plumbline.oracle.verdict import Verdict

from .graph_programs.early_writes import EARLY_WRITE
from .graph_programs.graph_program import ProgramBatch
from .guard_scenarios.guard_slots import CALL
from .guard_scenarios.scenarios import Scenario
from .transform_programs.programs import TransformProgram

_COMPILE = {
    "torch": "torch.compile({target}, backend={backend!r})",
    "plumbline": "plumbline.compile({target}, backend={backend!r})",
}


def _head(verdict: Verdict, compiler: str) -> list[str]:
    stage = f" (stage {verdict.stage})" if verdict.stage else ""
    said = f"# Found by plumbline fuzz{stage}. {verdict.kind.value}: {' '.join(verdict.sentence.split())[:300]}"
    imports = ["import torch, plumbline" if compiler == "plumbline" else "import torch"]
    return [said, *imports, "from plumbline.fuzz.scripted_judgement import demand_equal"]


def _compile_text(target: str, compiler: str, backend: str) -> str:
    known = _COMPILE.get(compiler)
    return known.format(target=target, backend=backend) if known else f"{target}  # compile it with {compiler!r} here"


def program_script(program: TransformProgram, compiler: str, backend: str, verdict: Verdict) -> str:
    """Return a script that judges a program with transforms."""
    inputs = ", ".join(f"a{number}" for number in range(len(program.inputs)))
    compiled = f"f{program.compiled}"
    lines = [*_head(verdict, compiler), program.source().replace("\n\n", "\n").rstrip()]
    if program.compiled == len(program.nest):
        lines.append(f"compiled = {_compile_text(compiled, compiler, backend)}")
    else:  # eager transforms around it look the compiled function up in these globals
        lines.append(f"scope = {{**globals(), {compiled!r}: {_compile_text(compiled, compiler, backend)}}}")
        lines.append(f"compiled = type({program.entry})({program.entry}.__code__, scope)")
        between = range(program.compiled + 1, len(program.nest))
        lines += [f"scope['f{n}'] = type(f{n})(f{n}.__code__, scope)" for n in between]
    lines += ["; ".join(program.argument_lines()), f"demand_equal({program.entry}, compiled, {inputs})"]
    return "\n".join(lines) + "\n"


def scenario_script(scenario: Scenario, compiler: str, backend: str, verdict: Verdict) -> str:
    """Return a script that plays a history and judges each of its calls."""
    used = scenario.short_source()
    lines = [*_head(verdict, compiler), used.rstrip(), f"compiled = {_compile_text('step', compiler, backend)}"]
    call = CALL.replace("step(", "demand_equal(step, compiled, ", 1)
    lines += [event.text if event.slot else call for event in scenario.events]
    return "\n".join(lines) + "\n"


def batch_script(batch: ProgramBatch, compiler: str, backend: str, verdict: Verdict) -> str:
    """Return a script that judges the calls of a batch; most batches have one program by then."""
    if len(batch.programs) > 1:
        return _company_script(batch, compiler, backend, verdict)
    program = batch.programs[0]
    lines = [*_head(verdict, compiler), program.source("f").rstrip()]
    lines.append(f"compiled = {_compile_text('f', compiler, backend)}")
    if _is_early_write(verdict):
        last = len(program.calls) - 1
        lines += [_EARLY_WRITE_IMPORT, program.arguments_source("arguments", last).rstrip()]
        lines.append(f"demand_equal_after_write(f, compiled, arguments, {last})")
        return "\n".join(lines) + "\n"
    for call in range(len(program.calls)):
        before, arguments = program.arguments_lines(call)
        lines += ["; ".join(before), f"demand_equal(f, compiled, *{arguments})"]
    return "\n".join(lines) + "\n"


def _company_script(batch: ProgramBatch, compiler: str, backend: str, verdict: Verdict) -> str:
    lines = [*_head(verdict, compiler), batch.source().rstrip()]
    lines.append(f"compiled = {_compile_text('step', compiler, backend)}")
    count = len(batch.programs)
    given = [" + ".join(f"arguments_{number}_{call}()" for number in range(count)) for call in range(batch.calls)]
    if _is_early_write(verdict):
        lines.append(_EARLY_WRITE_IMPORT)
        for number in range(count):
            both = f"lambda *a: step(*a)[{number}], lambda *a: compiled(*a)[{number}]"
            lines.append(f"demand_equal_after_write({both}, lambda: {given[-1]}, {batch.calls - 1})")
    else:
        lines += [f"demand_equal(step, compiled, *({arguments}))" for arguments in given]
    return "\n".join(lines) + "\n"


_EARLY_WRITE_IMPORT = "from plumbline.fuzz.graph_programs.early_writes import demand_equal_after_write"


def _is_early_write(verdict: Verdict) -> bool:
    return bool(verdict.findings) and verdict.findings[0].aspect == EARLY_WRITE
