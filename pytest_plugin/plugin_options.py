"""The settings, read and checked before any test runs; every error is one line that says what to do."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.harness.compilers import CompileRequest
from plumbline.oracle.harness.targets import find_target
from plumbline.oracle.judge_options import BOUNDARIES, JudgeOptions
from plumbline.reports.places import DEFAULT_DATABASE, database_place

from .judge_access import aspect_names, fault_names
from .minifying import MODES
from .recording.run_plan import RunPlan, read_run_plan
from .settings import (
    BACKENDS,
    BOUNDARY,
    COMPILERS,
    DATABASE,
    DYNAMIC,
    GRAD,
    IGNORE,
    ISOLATE,
    KNOWN,
    MINIFY,
    MODE,
    MUTATE,
    MUTATE_SCORE,
    PROFILE,
    PROFILES_INI,
    REPORT,
    REQUIRE,
    RNG,
    SETTINGS,
    TARGET,
    TIMEOUT,
    TOLD,
    UPDATE_KNOWN,
    Setting,
    profile_words,
    profiles,
    setting_value,
)
from .variants import Variant, select_variants, unknown_name

MODES_OF_STOCK = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOptions:
    """The checked settings of a session.

    variants: under which every test runs, in order.  boundary: some of BOUNDARIES, joined by commas.
    request: what is asked of the compiler.  timeout: seconds a test may take, None without a limit.
    isolate: tests run in a process of their own.  known: file of known failures, None without one.
    update_known: it is written anew.
    targets: import paths, all of which import.  judge: how a call is judged.
    require: None, or the least share (0 to 1) of tests in which something must be compiled; 1.0 fails each
    vacuous test by itself.
    minify: one of minifying.MODES.  faults: names of those to plant.
    least_score: share of them that tests must notice.  database: path or URL.
    report: directory of the HTML page, None for no page.
    plan: what the session records itself as.
    """

    variants: tuple[Variant, ...]
    boundary: str
    targets: tuple[str, ...]
    judge: JudgeOptions
    require: float | None
    minify: str
    database: str
    report: Path | None
    plan: RunPlan = field(default_factory=RunPlan)
    request: CompileRequest = field(default_factory=CompileRequest)
    timeout: float | None = None
    isolate: bool = False
    known: Path | None = None
    update_known: bool = False
    faults: tuple[str, ...] = ()
    least_score: float = 0.0


def read_options(config: pytest.Config, compilers: Mapping[str, tuple[str, ...]]) -> PluginOptions:
    """Return the checked settings of a session; compilers: each one's backends.

    Raises UserError for the first bad value; nothing is written then.
    """
    _check_profile(config)
    backends = setting_value(config, BACKENDS)
    targets = tuple(setting_value(config, TARGET))
    options = PluginOptions(
        variants=select_variants(backends, setting_value(config, COMPILERS), compilers),
        boundary=_some_of(config, BOUNDARY, BOUNDARIES),
        targets=targets,
        judge=JudgeOptions(
            gradients=_one_of(config, GRAD, ("auto", "off")) == "auto",
            rng=_one_of(config, RNG, ("eager", "native")),
            told_compiled=_one_of(config, TOLD, ("no", "yes")) == "yes",
            ignore=read_aspects(_names(setting_value(config, IGNORE)), where=IGNORE.option),
        ),
        require=_fraction(setting_value(config, REQUIRE), REQUIRE),
        minify=_one_of(config, MINIFY, MODES),
        database=_database(config),
        report=_report_directory(config),
        plan=read_run_plan(config),
        request=CompileRequest(
            dynamic={"auto": None, "yes": True, "no": False}[_one_of(config, DYNAMIC, ("auto", "yes", "no"))],
            mode=None if setting_value(config, MODE) is None else _one_of(config, MODE, MODES_OF_STOCK),
        ),
        timeout=_seconds(setting_value(config, TIMEOUT)),
        isolate=_one_of(config, ISOLATE, ("no", "yes")) == "yes",
        known=_known_file(config),
        update_known=_one_of(config, UPDATE_KNOWN, ("no", "yes")) == "yes",
        faults=_faults(setting_value(config, MUTATE)),
        least_score=_fraction(setting_value(config, MUTATE_SCORE), MUTATE_SCORE) or 0.0,
    )
    if options.update_known and options.known is None:
        hint = f"write {KNOWN.option}=known-failures.toml {UPDATE_KNOWN.option}"
        raise UserError("no file of known failures is named", where=UPDATE_KNOWN.option, hint=hint)
    for target in targets:
        check_target(target)
    if options.report is not None:
        check_directory(options.report)
    return options


def _faults(asked: str | None) -> tuple[str, ...]:
    names = _names(asked)
    if not names:
        return ()
    known = fault_names()
    if names == ("all",):
        return known
    for name in names:
        if name not in known:
            raise unknown_name("fault", name, known, where=MUTATE.option, hint="name faults from that list, or all")
    return tuple(map(str, names))


def read_aspects(names: tuple[object, ...], *, where: str) -> frozenset[str]:
    """Return the aspects that are named; raises UserError for one that does not exist."""
    for name in names:
        if name not in aspect_names():
            raise unknown_name("aspect", name, tuple(aspect_names()), where=where, hint="name aspects from that list")
    return frozenset(str(name) for name in names)


def check_target(path: str) -> None:
    """Raise UserError when a target does not import or cannot be called, whatever its module raises meanwhile."""
    try:
        find_target(path)
    except UserError as error:
        raise UserError(error.what, where=TARGET.option, why=error.why, hint=error.hint) from None
    except Exception as error:  # the user's module may raise anything while it is imported
        why = f"{type(error).__name__}: {error}"
        hint = "repair that module, or name another target"
        raise UserError(f"target {path!r} cannot be imported", where=TARGET.option, why=why, hint=hint) from None


def check_directory(path: Path) -> None:
    """Raise UserError when files cannot be written to a directory (which need not exist yet); writes nothing."""
    hint = f"name a writable directory with {REPORT.option}=DIR"
    if path.exists() and not path.is_dir():
        raise UserError("the report directory is a file", where=str(path), hint=hint)
    nearest = next(place for place in [path, *path.parents] if place.exists())
    try:
        # Trying is the only sure test: access bits say nothing to root or on odd file systems.
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        what = "the report directory cannot be written"
        raise UserError(what, where=str(path), why=why, hint=hint) from None


def _one_of(config: pytest.Config, setting: Setting, allowed: tuple[str, ...]) -> str:
    value = setting_value(config, setting)
    if value is None:
        return allowed[0]
    if value not in allowed:
        raise unknown_name(setting.name, value, allowed, where=setting.option, hint=f"write {setting.option}={{}}")
    return str(value)


def _some_of(config: pytest.Config, setting: Setting, allowed: tuple[str, ...]) -> str:
    """Return the names that are given, joined by commas; the first that is allowed where none is."""
    names = _names(setting_value(config, setting)) or (allowed[0],)
    for name in names:
        if name not in allowed:
            raise unknown_name(setting.name, name, allowed, where=setting.option, hint=f"write {setting.option}={{}}")
    return ",".join(map(str, names))


def _check_profile(config: pytest.Config) -> None:
    name = setting_value(config, PROFILE)
    known = profiles(config)
    if name is not None and name not in known:
        hint = f"write a line into {PROFILES_INI} of the ini file: `{name}: --compile-backends=all`"
        raise unknown_name("profile", name, tuple(known), where=PROFILE.option, hint=hint)
    options = tuple(setting.option for setting in SETTINGS)
    for word in profile_words(config):
        if word.partition("=")[0] not in options:
            where = f"{PROFILES_INI}, {name}"
            raise unknown_name("option", word, options, where=where, hint="a profile has options of plumbline alone")


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < float("inf"):
        hint = f"write {TIMEOUT.option}=300"
        raise UserError(f"{text!r} is not a number of seconds", where=TIMEOUT.option, hint=hint)
    return seconds


def _known_file(config: pytest.Config) -> Path | None:
    place = setting_value(config, KNOWN)
    if place == "":
        raise UserError("no file named", where=KNOWN.option, hint=f"write {KNOWN.option}=known-failures.toml")
    typed = getattr(config.option, KNOWN.dest, None) is not None
    return None if place is None else Path(_from(config, place, typed=typed))


def _names(text: str | None) -> tuple[object, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _fraction(text: str | None, setting: Setting) -> float | None:
    if text is None:
        return None
    if text == "":
        return 1.0
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        alone = f", or {setting.option} alone as the last option" if setting.kind == "optional" else ""
        hint = f"write {setting.option}=0.8{alone}"
        raise UserError(f"{text!r} is not a fraction from 0 to 1", where=setting.option, hint=hint)
    return value


def _database(config: pytest.Config) -> str:
    place = setting_value(config, DATABASE)
    typed = getattr(config.option, DATABASE.dest, None) is not None
    if place == "":
        raise UserError("no database named", where=DATABASE.option, hint=f"write {DATABASE.option}={DEFAULT_DATABASE}")
    return _from(config, database_place(place), typed=typed)


def _report_directory(config: pytest.Config) -> Path | None:
    place = setting_value(config, REPORT)
    typed = getattr(config.option, REPORT.dest, None) is not None
    if place == "":
        raise UserError("no directory named", where=REPORT.option, hint=f"write {REPORT.option}=plumbline-report")
    return None if place is None else Path(_from(config, place, typed=typed))


def _from(config: pytest.Config, place: str, *, typed: bool) -> str:
    """Return a path as absolute: typed ones count from where pytest was started, others from its root directory."""
    if "://" in place:
        return place
    base = config.invocation_params.dir if typed else config.rootpath
    return str(base / Path(place).expanduser())
