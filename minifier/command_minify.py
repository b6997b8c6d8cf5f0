"""The command `repro-minify CASE`: reduce a failing script or test to the few operators or lines that cause it.

Exit status: 0 a script was written and reproduces, 2 a wrong argument or nothing fails, 3 no script could be
written, with the reason.
"""

import json
import os
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

import click

from plumbline.compiler.base.errors import PlumblineError, UserError
from plumbline.reports.atomic_file import write_whole

from .cases.case_run import check_case, split_variant
from .graphs.graph_compilers import LEVELS, find_graph_compiler
from .minify import MinifyOptions, NotMinified
from .minify_case import BY, minify_case
from .reduce.problem import Budget
from .repro.issue_text import issue_text
from .repro.proof import check_place


def main() -> None:
    """Run the command line; errors are one line on stderr."""
    try:
        status = repro_minify.main(prog_name="repro-minify", standalone_mode=False)
    except NotMinified as error:
        _complain(error.one_line(), 3)
    except PlumblineError as error:
        _complain(error.one_line(), 2)
    except click.exceptions.NoArgsIsHelpError as help_request:
        print(help_request.format_message())
        sys.exit(2)
    except click.ClickException as error:
        _complain(f"{error.format_message()} Try: repro-minify --help", 2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)


def _complain(line: str, status: int) -> None:
    print(f"repro-minify: {line}".replace("\n", " "), file=sys.stderr)
    sys.exit(status)


def _from_environment(names: tuple[str, str], option: str | None) -> str | None:
    found = (os.environ.get(name) for name in names)
    return option if option is not None else next(filter(None, found), None)


MOST_WORKERS = 4
"""Workers where nobody says how many: each is a process with everything loaded, and a success makes the rest vain."""

_AFTER_NAMES = ("PLUMBLINE_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER")
_LEVEL_NAMES = ("PLUMBLINE_REPRO_LEVEL", "TORCHDYNAMO_REPRO_LEVEL")


_AFTER = "Reduce the graph after dynamo or aot.  [$TORCHDYNAMO_REPRO_AFTER, else by the guilty stage]"
_LEVEL = (
    "1: write the whole graph. 2: exceptions only. 3: each judgement in a child process, which may crash. "
    "4: wrong values too.  [$TORCHDYNAMO_REPRO_LEVEL, else 4]"
)
_COMPILER = "torch or plumbline.  [default: as the test id says, else plumbline, as in the plugin]"
_BACKEND = "inductor, aot_eager or eager.  [default: as the test id says, else inductor]"
_BY = "Reduce a graph of the case, its Python source, or (auto) the source where no graph fails by itself."
_ISSUE = "Also write the text of an upstream issue: program, verdict, what is known, versions."
_RUN_SECONDS = "Time after which one run is called a hang."
_ENGINE = (
    "Where smaller programs are run, several at once: local:4 for workers of this machine, dask://HOST:PORT for a "
    "cluster's, local:1 for one after the other.  [default: a worker for each processor, at most four]"
)
_FRESH = "Ask again what an earlier run asked about smaller programs."
_PROOFS = "Fresh processes in which the script has to reproduce."


@click.command(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("case")
@click.option("--after", metavar="STAGE", help=_AFTER)
@click.option("--level", metavar="1..4", help=_LEVEL)
@click.option("--compiler", metavar="NAME", help=_COMPILER)
@click.option("--backend", metavar="NAME", help=_BACKEND)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="File for the script.  [default: repro_<case>.py]"
)
@click.option("--queries", default=400, show_default=True, metavar="N", help="Maximum number of judgements.")
@click.option("--seconds", default=3600.0, show_default=True, metavar="S", help="Maximum time in seconds.")
@click.option("--bisect/--no-bisect", default=True, help="Also name what plumbline did wrong.  [default: --bisect]")
@click.option("--proofs", default=5, show_default=True, type=click.IntRange(1, 100), metavar="N", help=_PROOFS)
@click.option("--by", type=click.Choice(BY), default="auto", show_default=True, help=_BY)
@click.option("--run-seconds", default=300.0, show_default=True, metavar="S", help=_RUN_SECONDS)
@click.option("--issue", type=click.Path(path_type=Path), metavar="FILE", help=_ISSUE)
@click.option("--fresh", is_flag=True, help=_FRESH)
@click.option("--engine", metavar="PLACE", help=_ENGINE)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def repro_minify(
    case: str,
    after: str | None,
    level: str | None,
    compiler: str | None,
    backend: str | None,
    out: Path | None,
    queries: int,
    seconds: float,
    proofs: int,
    bisect: bool,
    by: str,
    run_seconds: float,
    issue: Path | None,
    fresh: bool,
    engine: str | None,
    as_json: bool,
) -> int:
    """Minimize the first failing compiled call of CASE, a Python script or a pytest node id, and write a script."""
    node_id, named_compiler, named_backend = split_variant(case)
    after, level = _from_environment(_AFTER_NAMES, after), _from_environment(_LEVEL_NAMES, level)
    for name in (*_AFTER_NAMES, *_LEVEL_NAMES):  # of the compiler's they would ask for scripts of every candidate
        os.environ.pop(name, None)
    options = MinifyOptions(
        out=out or Path(_default_name(node_id)),
        after=_checked_after(after),
        level=_checked_level(level),
        proofs=proofs,
        budget=Budget(queries, seconds),
        bisect=bisect,
        seconds=run_seconds,
        fresh=fresh,
        engine=engine or f"local:{min(MOST_WORKERS, len(os.sched_getaffinity(0)))}",
        command=f"repro-minify {shlex.join(sys.argv[1:])}",
    )
    check_case(node_id)
    check_place(options.out)
    chosen = compiler or named_compiler or "plumbline"
    find_graph_compiler(chosen)
    try:
        wanted = backend or named_backend or "inductor"
        result = minify_case(node_id, chosen, wanted, options, by=by, progress=_silent if as_json else _told)
    except NotMinified as error:
        if as_json:
            print(json.dumps({"path": None, "reproduces": False, "reason": error.reason, "sentence": error.one_line()}))
        raise
    if issue is not None and result.path is not None:
        write_whole(issue, issue_text(result.path))
    if as_json:
        print(json.dumps({**asdict(result), "path": str(result.path)}))
    else:
        print(f"{result.sentence}\n{result.culprit}".rstrip())
    return 0


def _told(line: str) -> None:
    print(f"repro-minify: {line}", file=sys.__stderr__, flush=True)


def _silent(_line: str) -> None:
    """Tell nothing: the answer is JSON."""


def _default_name(case: str) -> str:
    """Return `repro_<script>.py` or `repro_<test>.py`."""
    stem = case.split("::")[-1].split("[")[0] if "::" in case else Path(case).stem
    return f"repro_{stem.removeprefix('test_')}.py"


def _checked_after(after: str | None) -> str | None:
    if after is not None and after not in LEVELS:
        raise UserError(f"unknown stage {after!r}", where="--after", hint="choose dynamo or aot")
    return after


def _checked_level(level: str | None) -> int:
    if level is None:
        return 4
    if level not in ("1", "2", "3", "4"):
        raise UserError(f"unknown level {level!r}", where="--level", hint="choose 1, 2, 3 or 4")
    return int(level)


if __name__ == "__main__":
    main()
