"""The command line: `plumbline report`, `plumbline gate`, `plumbline fuzz`, `plumbline sweep`, and so on.

Commands import what they need when they run, so that `plumbline --help` does not wait for a database or torch.
Exit status: 0 success, 1 a negative result (a failed gate, a problem found), 2 a wrong request; the gate has more,
see command_results.py.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from plumbline.compiler.base.errors import PlumblineError, UserError
from plumbline.reports.places import DEFAULT_PAGE, database_place, page_file

from .command_dashboard import dashboard
from .command_mutate import mutate
from .command_profile import profile
from .command_results import COMMANDS, database, run_option
from .version import __version__


def main() -> None:
    """Run the command line; errors of ours are one line on stderr and exit status 2."""
    try:
        status = plumbline.main(prog_name="plumbline", standalone_mode=False)
    except PlumblineError as error:
        _complain(error.one_line())
    except click.exceptions.NoArgsIsHelpError as help_request:
        print(help_request.format_message())
        sys.exit(2)
    except click.ClickException as error:
        _complain(f"{error.format_message()} Try: plumbline --help")
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:  # `plumbline report | head`
        sys.stderr.close()
        sys.exit(141)
    sys.exit(status if isinstance(status, int) else 0)


def _complain(line: str) -> None:
    print(f"plumbline: {line}".replace("\n", " "), file=sys.stderr)
    sys.exit(2)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="plumbline %(version)s")
def plumbline() -> None:
    """Test compiled PyTorch: reports, gates, fuzzers, a check of this machine, and saved internal errors."""


@plumbline.command()
@database
@run_option
@click.option(
    "--html", metavar="PLACE", help=f"Also write a page: a directory or a .html file, such as {DEFAULT_PAGE}."
)
@click.option("--all", "every_test", is_flag=True, help="List every test, even if there are many.")
@click.option("--slowest", default=5, show_default=True, metavar="N", help="How many of the slowest cases to list.")
@click.option("--failing", is_flag=True, help="Print only the ids of failing cases, for repro-minify; worst first.")
def report(
    db: str | None, run_name: str | None, html: str | None, every_test: bool, slowest: int, failing: bool
) -> int:
    """Show the results of a run, and write them as one self-contained HTML page."""
    from plumbline.reports.dashboard.case_commands import failing_ids
    from plumbline.reports.page import write_page
    from plumbline.reports.store import open_store
    from plumbline.reports.text_report import report_text

    with open_store(database_place(db)) as store:
        run = store.run(run_name)
        if html is not None:
            file = page_file(html)
            write_page(store, run, file)
        cases = store.cases(run.run_id)
        if failing:
            print("".join(f"{case}\n" for case in failing_ids(cases)), end="")
            return 0
        print(report_text(run, cases, slowest=slowest, every_test=every_test))
        if html is not None:
            print(f"\npage written: {file}")
    return 0


for _command in (*COMMANDS, dashboard, mutate, profile):
    plumbline.add_command(_command)


_LOG_SECONDS = 60.0  # between two lines of progress in a log
_FUZZ_MINUTES = 10.0  # where nothing is asked for
_engine = click.option(
    "--engine",
    default="",
    metavar="PLACE",
    help="Where it is done: local or local:4 for workers of this machine, dask://HOST:PORT for a cluster's.",
)


@plumbline.command()
@click.argument("mode", required=False, metavar="graphs|programs|transforms|guards")
@click.option("--examples", type=click.IntRange(min=1), help="Number of programs.  [default: as many as fit]")
@click.option("--compiler", metavar="NAME", help="plumbline or torch.  [default: plumbline]")
@click.option("--backend", metavar="NAME", help="Backend of the compiler.  [default: inductor]")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed repeats a campaign."
)
@database
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    default=Path(".plumbline/fuzz"),
    show_default=True,
    metavar="DIR",
    help="Where to save failures: JSON for --replay, and a standalone script.",
)
@click.option("--replay", type=click.Path(path_type=Path), metavar="FILE", help="Run a saved failure again.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    help="End after this time.  [default: 10, none with --examples]",
)
@click.option("--resume", is_flag=True, help="Go on with the campaign of this seed that was cut short.")
@click.option("--led", is_flag=True, help="Draw what does what no earlier program did.")
@_engine
def fuzz(
    mode: str | None,
    examples: int | None,
    compiler: str | None,
    backend: str | None,
    seed: int,
    db: str | None,
    save: Path,
    replay: Path | None,
    minutes: float | None,
    resume: bool,
    led: bool,
    engine: str,
) -> int:
    """Search for programs that a compiler gets wrong; exit with 1 if one is found.

    graphs: random programs of ATen operators: views, writes, casts, reductions, numbers and sizes that change.
    transforms: random programs under nests of grad, vjp, jvp, vmap and Jacobians.  guards: functions whose globals,
    attributes and containers change between calls.  programs: random Python programs, compared with plain Python.
    """
    from plumbline.fuzz import recorded_campaign
    from plumbline.fuzz.campaign import CampaignSettings

    if replay is not None:
        return int(recorded_campaign.replay(replay, compiler, backend, print))
    if mode is None:
        raise UserError(
            "no fuzzer named", hint="run plumbline fuzz graphs, plumbline fuzz transforms, or plumbline fuzz guards"
        )
    chosen = compiler or recorded_campaign.preferred_compiler()
    minutes = minutes or (None if examples else _FUZZ_MINUTES)
    options = CampaignSettings(examples or sys.maxsize, seed, save, seconds=60 * minutes if minutes else None, led=led)
    place = database_place(db)
    show = _progress_line()

    def say(text: str) -> None:
        """Print a failure below the line of progress."""
        show("")
        print(text, flush=True)

    report = recorded_campaign.run_recorded(
        mode, chosen, backend or "inductor", options, place, say, show, resume=resume, engine=engine
    )
    say(report.summary())
    return 130 if report.interrupted else int(bool(report.failures))


@plumbline.group()
def sweep() -> None:
    """Go through a whole table of programs, and look for those that a compiler gets wrong."""


@sweep.command()
@click.option("--op", "operators", default="", metavar="REGEX", help="Operators to try; 'module:' starts modules.")
@click.option("--backend", "backends", multiple=True, metavar="NAME", help="[default: aot_eager, then inductor]")
@click.option("--dtype", "dtypes", multiple=True, metavar="NAME", help="Such as float32; may be repeated.")
@click.option("--sizes", type=click.Choice(["static", "dynamic"]), help="Only fixed or only dynamic sizes.")
@click.option("--samples", type=click.IntRange(min=1), default=4, show_default=True, help="Of each operator and dtype.")
@click.option("--minutes", type=click.FloatRange(min=0), help="Start nothing after this time.")
@click.option("--resume", is_flag=True, help="Go on where the last run with these options ended.")
@click.option("--retry", is_flag=True, help="As --resume, but try again what had findings.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Draws samples and the order.")
@_engine
@database
@click.option(
    "--save",
    "folder",
    type=click.Path(path_type=Path),
    default=Path(".plumbline/sweep"),
    show_default=True,
    metavar="DIR",
    help="Where rows and findings are kept.",
)
def operators(
    backends: tuple[str, ...], dtypes: tuple[str, ...], sizes: str | None, db: str | None, **asked: Any
) -> int:
    """Compare torch's operators and modules with eager; exit with 1 on a finding.

    Inputs come from torch's own tests. Each operator is called alone and beside others, with inputs of many forms.
    """
    from plumbline.fuzz.operator_sweep.recorded_sweep import SweepCommand, run_recorded_sweep

    chosen = {"backends": backends, "dtypes": dtypes, "sizes": (sizes,) if sizes else ()}
    asked.update({name: value for name, value in chosen.items() if value})
    command = SweepCommand(**asked)
    report = run_recorded_sweep(command, database_place(db), print)
    print(report.summary())
    return 130 if report.interrupted else int(report.failed)


@plumbline.group()
def bench() -> None:
    """Measure how good a judge is at finding wrong answers."""


@bench.command()
@click.option("--compiler", default="torch", show_default=True, metavar="NAME", help="Judge torch or plumbline.")
@click.option("--backend", "backends", multiple=True, metavar="NAME", help="May be repeated.  [default: inductor]")
@click.option("--case", "pattern", default="", metavar="REGEX", help="Only cases whose class/name has this.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Also write every outcome.")
@click.option("--list", "only_list", is_flag=True, help="List the cases and what is known of each; run nothing.")
@click.option(
    "--export", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Write the programs as pytest files."
)
@click.option(
    "--score", "junit", type=click.Path(path_type=Path), metavar="FILE", help="Score another tool by its JUnit XML."
)
@click.option("--judge", type=click.Choice(["", "assert_close"]), default="", help="Another judge than plumbline's.")
def silent(
    compiler: str,
    backends: tuple[str, ...],
    pattern: str,
    json_file: Path | None,
    only_list: bool,
    folder: Path | None,
    junit: Path | None,
    judge: str,
) -> int:
    """Judge programs on which a compiler is, or was, silently wrong; exit with 1 if an outcome is not the known one.

    A program of which a fault is known has to be flagged, any other has not.
    """
    from plumbline.fuzz.silent_bench.bench_run import BenchCommand, case_list, run_bench, write_reports
    from plumbline.fuzz.silent_bench.other_tools import export_programs

    if folder is not None:
        print(f"{export_programs(folder)} files of programs and their data written: {folder}")
        return 0
    if only_list:
        print(case_list(pattern))
        return 0
    command = BenchCommand(compiler, backends or ("inductor",), pattern, junit, judge)
    reports = run_bench(command, _progress_line())
    _progress_line()("")
    print("\n\n".join(report.summary() for report in reports))
    if json_file is not None:
        write_reports(json_file, reports)
    if any(report.interrupted for report in reports):
        return 130
    return int(any(report.failed for report in reports))


def _progress_line() -> Callable[[str], None]:
    """Return a function that shows its text in place of what it showed last, where standard error is a terminal.

    Elsewhere, in a log, it writes a line now and then; an empty text removes what stands on the terminal.
    """
    if sys.stderr.isatty():
        return lambda line: print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)
    written = time.monotonic()

    def show(line: str) -> None:
        nonlocal written
        if line and time.monotonic() - written > _LOG_SECONDS:
            written = time.monotonic()
            print(line, file=sys.stderr, flush=True)

    return show


@plumbline.command(context_settings={"ignore_unknown_options": True})
@click.argument("target", metavar="SCRIPT[::FUNCTION]")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENTS]...")
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the result as JSON.")
@click.option(
    "--html", "page_file", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with a picture."
)
@click.option("--svg", "picture_file", type=click.Path(path_type=Path), metavar="FILE", help="Write the picture alone.")
@click.option("--gradients", is_flag=True, help="With ::FUNCTION, measure the gradients of its results, too.")
@click.option(
    "--traced", default=8, show_default=True, metavar="N", help="Outputs to follow back to the lines, worst first."
)
def noise(
    target: str,
    arguments: tuple[str, ...],
    json_file: Path | None,
    page_file: Path | None,
    picture_file: Path | None,
    gradients: bool,
    traced: int,
) -> int:
    """Say which lines of a script lose digits to rounding; exit with 1 if the script raises.

    Measures the calls of plumbline.measure_noise in it, if there are any; else the script as a whole, whose outputs are
    the tensors that its names hold in the end. With ::FUNCTION, one call of that function, which takes no arguments.
    """
    from plumbline.oracle.noise_meter.measured_script import script_reports, users_traceback
    from plumbline.oracle.noise_meter.measuring import NoiseMeter
    from plumbline.oracle.noise_meter.noise_picture import page, picture

    try:
        reports = script_reports(target, list(arguments), NoiseMeter(gradients=gradients, traced=traced))
    except (PlumblineError, KeyboardInterrupt):
        raise
    except BaseException as error:
        print(users_traceback(error), file=sys.stderr)
        return 1
    for report in reports:
        print(f"{report.program}\n\n{report}\n")
    if not reports:
        print("nothing was measured: the script ended without a call of measure_noise")
    if json_file is not None:
        json_file.write_text(json.dumps([report.to_dict() for report in reports], indent=1), encoding="utf-8")
    for file, write in ((page_file, page), (picture_file, picture)):
        if file is not None:
            file.write_text(write(reports), encoding="utf-8")
    return 0


_BISECT_COMPILER = "plumbline or torch, by its own switches.  [default: as the test id says, else plumbline]"
_BISECT_BACKEND = "inductor, aot_eager or eager.  [default: as the test id says, else inductor]"


@plumbline.command()
@click.argument("case")
@click.option("--compiler", metavar="NAME", help=_BISECT_COMPILER)
@click.option("--backend", metavar="NAME", help=_BISECT_BACKEND)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="For the files.  [default: culprit_<case>]")
@click.option("--runs", default=200, show_default=True, metavar="N", help="Maximum number of runs of the case.")
@click.option("--isolate", is_flag=True, help="Each run in a child process, which may crash or hang.")
@click.option("--whole", is_flag=True, help="Run the whole program each time, not its failing call alone.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def bisect(
    case: str,
    compiler: str | None,
    backend: str | None,
    out: Path | None,
    runs: int,
    isolate: bool,
    whole: bool,
    as_json: bool,
) -> int:
    """Name the step of a compiler that breaks CASE, a Python script or a pytest node id.

    For plumbline, also writes what the guilty stage makes of the program without that step and with it.
    """
    from plumbline.minifier.bisect.bisect_program import BisectOptions, bisect_program
    from plumbline.minifier.cases.case_run import check_case, split_variant
    from plumbline.oracle.harness.known_compilers import find_compiler

    node_id, named_compiler, named_backend = split_variant(case)
    chosen, level = compiler or named_compiler or "plumbline", backend or named_backend or "inductor"
    check_case(node_id)
    find_compiler(chosen, level)
    if chosen == "torch":
        from plumbline.minifier.bisect.bisect_stock import bisect_stock_program

        blamed = bisect_stock_program(node_id, level, _progress_line())
        print(json.dumps(blamed.as_data()) if as_json else f"\r{blamed.text()}")
        return 0
    stem = node_id.split("::")[-1].split("[")[0] if "::" in node_id else Path(node_id).stem
    options = BisectOptions(folder=out or Path(f"culprit_{stem}"), budget=runs, isolated=isolate, whole=whole)
    culprit = bisect_program(node_id, level, options, _progress_line())
    print(json.dumps(culprit.as_data()) if as_json else culprit.text())
    return 0 if culprit.application is not None or culprit.stage else 1


@plumbline.command()
@click.argument("case", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--versions", metavar="LIST", help="Versions of torch, such as 2.12.0,2.13.0.  [default: all pip offers]")
@click.option("--bad", metavar="VERSION", help="One that is known to be bad.  [default: the newest bad one is found]")
@click.option("--made-only", is_flag=True, help="Install nothing: only versions whose environment was made before.")
@click.option("--index-url", metavar="URL", help="Where pip finds torch.  [default: as pip is configured]")
@click.option("--good", "good_commit", metavar="COMMIT", help="Search commits of this repository, from this good one.")
@click.option("--bad-commit", default="HEAD", show_default=True, metavar="COMMIT", help="With --good: to this bad one.")
def when(
    case: Path,
    versions: str | None,
    bad: str | None,
    made_only: bool,
    index_url: str | None,
    good_commit: str | None,
    bad_commit: str,
) -> int:
    """Say in which versions of torch, or since which commit, the script CASE fails.

    CASE ends with status 0 where all is well and with 1 where it fails, as the scripts of repro-minify do; any other
    status says nothing. Environments are made in the cache folder and kept.
    """
    from plumbline.minifier.bisect.commit_search import search_commits
    from plumbline.minifier.bisect.torch_environments import TorchEnvironments, environments_directory
    from plumbline.minifier.bisect.version_search import search_versions

    def progress(line: str) -> None:
        print(f"plumbline when: {line}", file=sys.stderr, flush=True)

    if good_commit is not None:
        print(search_commits(case, good_commit, bad_commit, Path.cwd(), progress).text())
        return 0
    arguments = ("--index-url", index_url) if index_url else ()
    environments = TorchEnvironments(environments_directory(), arguments, progress=progress)
    named = [version.strip() for version in versions.split(",")] if versions else None
    tried = named or (environments.made() if made_only else environments.installable())
    if made_only:
        tried = [version for version in tried if version in environments.made()]
    if not tried or (bad is not None and bad not in tried):
        what = "no environment is made yet" if not tried else f"--bad {bad} is none of the versions"
        raise UserError(what, hint="name versions: --versions 2.12.0,2.13.0")
    finding = search_versions(tried, lambda version: environments.try_case(case, version), bad)
    print(finding.text())
    return 0 if finding.first_bad is not None else 1


@plumbline.command()
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def doctor(as_json: bool) -> int:
    """Check this machine: Python, torch, C compiler, Triton, GPU, threads, cache, database, plugin."""
    from .doctor import examine, findings_json, findings_text, healthy

    findings = examine()
    print(findings_json(findings) if as_json else findings_text(findings))
    return 0 if healthy(findings) else 1


@plumbline.command()
@click.argument("number", required=False, type=click.IntRange(min=1), metavar="N")
@click.option("--clear", is_flag=True, help="Delete all bundles.")
def bundles(number: int | None, clear: bool) -> int:
    """List bundles, the saved reports on internal errors, newest first; with N, show bundle N."""
    import shutil

    from plumbline.compiler.base.bundle import ABOUT, REPRO, bundle_directory
    from plumbline.compiler.base.bundle import bundles as bundles_in
    from plumbline.compiler.base.options import options_from_environment

    options = options_from_environment()
    folders = bundles_in(options)
    if clear:
        for place in folders:
            shutil.rmtree(place)
        print(f"{len(folders)} bundles deleted")
        return 0
    if number is not None:
        if number > len(folders):
            hint = f"there are {len(folders)} in {bundle_directory(options)}"
            raise UserError(f"there is no bundle {number}", hint=hint)
        place = folders[number - 1]
        print(f"{place}\n\n{(place / ABOUT).read_text(encoding='utf-8').rstrip()}")
        if (place / REPRO).is_file():
            print(f"\nto run it again: python {place / REPRO}")
        return 0
    for position, place in enumerate(folders, 1):
        lines = (place / ABOUT).read_text(encoding="utf-8").splitlines()
        print(f"{position:>3}  {place.name}  {lines[1]}")
    print(f"{len(folders)} bundles in {bundle_directory(options)}")
    return 0


@plumbline.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--compiler", "compilers", multiple=True, metavar="NAME", help="Compiler to judge.  [default: plumbline]")
@click.option("--backends", default="all", show_default=True, metavar="NAMES", help="As --compile-backends of pytest.")
@click.option(
    "--list",
    "place",
    type=click.Path(path_type=Path),
    default=Path("tests/projects.toml"),
    show_default=True,
    metavar="FILE",
    help="The packages, with version and sample.",
)
@click.option("--work", type=click.Path(path_type=Path), default=Path(".plumbline/projects"), show_default=True)
@click.option("--checkouts", type=click.Path(path_type=Path), metavar="DIR", help="Folder with checkouts by name.")
@click.option("--minutes", default=20.0, show_default=True, metavar="N", help="Time of each of a package's two runs.")
@click.option("--brief", is_flag=True, help="Run fewer tests: those that the list's field `brief` chooses.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the table to this file as well.")
@_engine
def projects(
    names: tuple[str, ...],
    compilers: tuple[str, ...],
    backends: str,
    place: Path,
    work: Path,
    checkouts: Path | None,
    minutes: float,
    brief: bool,
    out: Path | None,
    engine: str,
) -> int:
    """Run the tests of real packages plainly and judged, and print what the judge saw; exit with 1 if a test was lost.

    Each package gets an environment of its own below --work, which sees the packages that are installed here. Packages
    and their tests come from where pip and git get them.
    """
    from plumbline.pytest_plugin.projects.project_list import chosen_projects, read_projects, shortened
    from plumbline.pytest_plugin.projects.project_table import project_table
    from plumbline.pytest_plugin.projects.project_trial import ProjectTrial, run_trials
    from plumbline.pytest_plugin.variants import LADDER

    chosen = [shortened(each) if brief else each for each in chosen_projects(read_projects(place), names)]
    listed = LADDER if backends == "all" else tuple(backends.split(","))
    under = ",".join(f"{compiler}:{name}" for compiler in compilers for name in listed) or backends
    sources = checkouts.absolute() if checkouts else None
    trials = [
        ProjectTrial(project=each, work=work.absolute(), checkouts=sources, backends=under, seconds=minutes * 60)
        for each in chosen
    ]
    results = []
    for result in run_trials(trials, engine):
        results.append(result)
        name = f"{result.project.name} {result.project.version}"
        print(f"{name}: {result.trouble or 'done'}", file=sys.stderr, flush=True)
        for test in result.lost:
            print(f"  lost: {test}", file=sys.stderr)
        for test in result.vacuous:
            print(f"  not judged: {test}", file=sys.stderr)
        if out is not None:  # after each package: a run may be cut short
            out.write_text(project_table(results), encoding="utf-8")
    print(project_table(results), end="")
    return 1 if any(result.lost or result.trouble for result in results) else 0


if __name__ == "__main__":
    main()
