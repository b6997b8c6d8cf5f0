"""The command of planted faults: how good a suite is at noticing a compiler that is wrong."""

import subprocess
import sys

import click


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PYTEST ARGUMENTS]...")
@click.option("--faults", default="all", show_default=True, metavar="all|NAMES", help="Which faults to plant.")
@click.option("--at-least", type=click.FloatRange(0, 1), help="Exit with 1 if a smaller share of faults is noticed.")
def mutate(arguments: tuple[str, ...], faults: str, at_least: float | None) -> int:
    """Plant faults into the compiler, one at a time, and tell which of them no test notices.

    Takes pytest's arguments, such as tests --compile-backends=eager; the default backend is inductor. Every test that
    passes runs once more with each fault, with the judge off: what fails then is the test's own doing. The state
    that a test can reach is put back before each run.
    """
    chosen = [] if any(word.startswith("--compile-backends") for word in arguments) else ["--compile-backends=inductor"]
    chosen += [f"--compile-mutate={faults}"]
    if at_least is not None:
        chosen.append(f"--compile-mutate-score={at_least}")
    return subprocess.run([sys.executable, "-m", "pytest", *arguments, *chosen], check=False).returncode
