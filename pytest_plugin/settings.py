"""The table of the plugin's settings: each is a command-line option and an ini entry.

Nothing heavy may be imported here: pytest loads this file in every session, with the plugin off too.
"""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from plumbline.oracle.judge_options import BOUNDARIES


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: `--compile-<name>` on the command line, `compile_<ini>` in the ini file.

    kind: "text", "list" (the option may be repeated) or "optional" (the option may stand without a value).
    """

    name: str
    help: str
    metavar: str
    kind: Literal["text", "list", "optional"] = "text"
    ini: str = ""

    @property
    def option(self) -> str:
        """Return the option as the user types it."""
        return f"--compile-{self.name}"

    @property
    def dest(self) -> str:
        """Return the name of the parsed value; ours, so that no other plugin's option meets it."""
        return f"plumbline_{self.name}"

    @property
    def ini_name(self) -> str:
        """Return the name in the ini file."""
        return f"compile_{self.ini or self.name}"


BACKENDS = Setting(
    "backends",
    "run every test once per backend and judge what was compiled: all, or names such as eager,aot_eager,inductor,"
    "torch:inductor; none turns an ini entry off",
    "NAMES",
)
COMPILERS = Setting("compilers", "compilers under test, separated by commas (default: plumbline, else torch)", "NAMES")
BOUNDARY = Setting(
    "boundary",
    "what is compiled and judged: module (outermost nn.Module calls and whatever is passed to torch.compile), call "
    "(the first callee outside the test files), explicit (targets and the compiled fixture)",
    "|".join(BOUNDARIES),
)
TARGET = Setting("target", "import path of a function or class to judge; may be repeated", "PATH", "list", "targets")
REQUIRE = Setting(
    "require",
    "fail tests in which nothing was compiled; with a fraction, fail the run when a smaller share of tests compiled",
    "FRACTION",
    "optional",
)
GRAD = Setting("grad", "judge gradients: auto (where grad mode is on and an output requires grad) or off", "auto|off")
RNG = Setting("rng", "random numbers of compiled code: eager (the same as eager) or native (its own)", "eager|native")
TOLD = Setting("told", "what eager is told where a program asks whether it is compiled (else: DESIGN)", "no|yes")
IGNORE = Setting("ignore", "aspects to report without failing the test, separated by commas", "ASPECTS")
MINIFY = Setting(
    "minify",
    "minimize failures after the run and write scripts: off, auto (the first few), always",
    "off|auto|always",
)
DATABASE = Setting("db", "result database, a path or an SQLAlchemy URL (default .plumbline/results.sqlite)", "PLACE")
REPORT = Setting("report", "directory for the HTML report", "DIR")
KIND = Setting("kind", "what the run is for: local, pull, nightly (which moves the state of cases)", "KIND")
SUITE = Setting("suite", "name of the suite; runs are compared within one", "NAME")
RUN = Setting("run", "name of the run, the same for all its shards (default: a fresh one)", "NAME")
SHARD = Setting("shard", "which part of the run this session is, such as 2/4", "N/OF")
ATTEMPT = Setting("attempt", "record results as retries of the run: 2 or higher", "N")

SETTINGS = (
    *(BACKENDS, COMPILERS, BOUNDARY, TARGET, REQUIRE, GRAD, RNG, TOLD, IGNORE, MINIFY, DATABASE, REPORT),
    *(KIND, SUITE, RUN, SHARD, ATTEMPT),
)


def add_settings(parser: pytest.Parser) -> None:
    """Declare every setting to pytest, as an option and as an ini entry."""
    group = parser.getgroup("plumbline", "judge compiled code (plumbline)")
    for setting in SETTINGS:
        how: dict[str, Any] = {"dest": setting.dest, "metavar": setting.metavar, "default": None, "help": setting.help}
        if setting.kind == "list":
            how["action"] = "append"
        if setting.kind == "optional":
            how |= {"nargs": "?", "const": ""}
        group.addoption(setting.option, **how)
        if setting.kind == "list":
            parser.addini(setting.ini_name, setting.help, type="linelist", default=[])
        else:
            parser.addini(setting.ini_name, setting.help, default=None)


def setting_value(config: pytest.Config, setting: Setting) -> Any:
    """Return the command line's value, else the ini file's, else None (an empty list for lists)."""
    option = getattr(config.option, setting.dest, None)
    entry = config.getini(setting.ini_name)
    if setting.kind == "list":
        return [*(entry or []), *(option or [])]
    return entry if option is None else option


def is_on(config: pytest.Config) -> bool:
    """Return whether backends are chosen, on the command line or in the ini file; cheap, for every session."""
    option = getattr(config.option, BACKENDS.dest, None)
    if option is None:
        option = getattr(getattr(config, "known_args_namespace", None), BACKENDS.dest, None)
    chosen = config.getini(BACKENDS.ini_name) if option is None else option
    return bool(chosen is not None and chosen.strip() != "none" and (chosen.strip() or option is not None))


def stray_option(config: pytest.Config) -> str | None:
    """Return an option of ours that was typed although no backend is chosen, None without one."""
    if getattr(config.option, BACKENDS.dest, None) is not None:
        return None
    typed = (s.option for s in SETTINGS if s is not BACKENDS and getattr(config.option, s.dest, None) is not None)
    return next(typed, None)
