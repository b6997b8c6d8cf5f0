"""A failure as a stand-alone Python script: the program, compiled and eager side by side; it exits 1 if they differ."""

from plumbline.oracle.verdict import Verdict

from .guard_scenarios.guard_slots import CALL
from .guard_scenarios.scenarios import Scenario
from .transform_programs.programs import TransformProgram

_COMPILE = {
    "torch": "torch.compile({target}, backend={backend!r})",
    "plumbline": "plumbline.compile({target}, backend={backend!r})",
}


def _head(verdict: Verdict, compiler: str) -> list[str]:
    said = [f"# {line}" for line in f"{verdict.kind.value}: {verdict.sentence}".splitlines()]
    imports = ["import plumbline"] if compiler == "plumbline" else []
    return ["# Found by plumbline fuzz.", *said, "import sys", "", "import torch", *imports, ""]


def _compile_text(target: str, compiler: str, backend: str) -> str:
    known = _COMPILE.get(compiler)
    return known.format(target=target, backend=backend) if known else f"{target}  # compile it with {compiler!r} here"


def program_script(program: TransformProgram, compiler: str, backend: str, verdict: Verdict) -> str:
    """Return a script that runs a program eager and compiled and compares values, dtypes and strides."""
    inputs = ",\n".join(f"        {spec.expression()}" for spec in program.inputs)
    compiled = f"f{program.compiled}"
    lines = [
        *_head(verdict, compiler),
        program.source(),
        "def inputs():",
        f"    return (\n{inputs},\n    )\n\n",
        f"expected = {program.entry}(*inputs())",
        f"{compiled} = {_compile_text(compiled, compiler, backend)}",
        f"actual = {program.entry}(*inputs())",
        "print('eager:', expected)",
        "print('compiled:', actual)",
        "try:",
        "    torch.testing.assert_close(actual, expected, equal_nan=True, check_stride=True)",
        "except AssertionError as error:",
        "    sys.exit(str(error))",
    ]
    return "\n".join(lines) + "\n"


def scenario_script(scenario: Scenario, compiler: str, backend: str, verdict: Verdict) -> str:
    """Return a script that plays a history twice, in processes of its own, and compares what the calls print."""
    play = [event.text or f"print({CALL})" for event in scenario.events]
    lines = [
        *_head(verdict, compiler),
        "if len(sys.argv) == 1:  # play the history eager, then compiled, and compare",
        "    import subprocess",
        "",
        "    plays = [subprocess.run([sys.executable, __file__, way], stdout=subprocess.PIPE, text=True)",
        "             for way in ('eager', 'compiled')]",
        "    print('eager:', plays[0].stdout, 'compiled:', plays[1].stdout, sep='\\n')",
        "    sys.exit((plays[0].stdout, plays[0].returncode) != (plays[1].stdout, plays[1].returncode))",
        "",
        scenario.source(),
        "if sys.argv[1] == 'compiled':",
        f"    step = {_compile_text('step', compiler, backend)}",
        "",
        *play,
    ]
    return "\n".join(lines) + "\n"
