"""The command that runs a script and says where the time of its compiled code goes."""

import runpy
import sys
from pathlib import Path

import click

from plumbline.compiler.base.errors import UserError


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def profile(script: Path, arguments: tuple[str, ...]) -> int:
    """Run SCRIPT, and print the time, traffic and arithmetic of each kernel of its compiled code, with its lines."""
    from plumbline.compiler.kernel_profile import profile as watched

    if not script.is_file():
        raise UserError(f"{script} is no file", hint="name a Python script that calls plumbline.compile")
    before = sys.argv, sys.path
    sys.argv, sys.path = [str(script), *arguments], [str(script.resolve().parent), *sys.path]
    try:
        with watched() as found:
            runpy.run_path(str(script), run_name="__main__")
    finally:
        sys.argv, sys.path = before
    print(found)
    return 0
