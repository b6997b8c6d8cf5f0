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

    kind: "text", "list" (the option may be repeated), "optional" (the option may stand without a value) or "flag" (it
    has none).
    """

    name: str
    help: str
    metavar: str
    kind: Literal["text", "list", "optional", "flag"] = "text"
    ini: str = ""

    @property
    def option(self) -> str:
        """Return the option as the user types it."""
        return f"--compile-{self.name}"

    @property
    def dest(self) -> str:
        """Return the name of the parsed value; ours, so that no other plugin's option meets it."""
        return f"plumbline_{self.name.replace('-', '_')}"

    @property
    def ini_name(self) -> str:
        """Return the name in the ini file."""
        return f"compile_{self.ini or self.name.replace('-', '_')}"


BACKENDS = Setting(
    "backends",
    "run every test once per backend and judge what was compiled: all, or names such as eager,aot_eager,inductor,"
    "torch:inductor; none turns an ini entry off",
    "NAMES",
)
COMPILERS = Setting("compilers", "compilers under test, separated by commas (default: plumbline, else torch)", "NAMES")
BOUNDARY = Setting(
    "boundary",
    "what is compiled and judged, one or several: auto (module, and call where no module is met), module (outermost "
    "calls of nn.Module and of its methods), call (the first callee outside the test files), explicit (targets, the "
    "compiled fixture and whatever is passed to torch.compile, which the others include)",
    ",".join(BOUNDARIES),
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
MUTATE = Setting(
    "mutate",
    "run every test that passes once more with each planted fault of the compiler, unjudged, and tell which faults no "
    "test notices: all, or names",
    "all|NAMES",
)
MUTATE_SCORE = Setting("mutate-score", "fail the run when a smaller share of the planted faults is noticed", "FRACTION")
DATABASE = Setting("db", "result database, a path or an SQLAlchemy URL (default .plumbline/results.sqlite)", "PLACE")
REPORT = Setting("report", "directory for the HTML report", "DIR")
KIND = Setting("kind", "what the run is for: local, pull, nightly (which moves the state of cases)", "KIND")
SUITE = Setting("suite", "name of the suite; runs are compared within one", "NAME")
RUN = Setting("run", "name of the run, the same for all its shards (default: a fresh one)", "NAME")
SHARD = Setting("shard", "which part of the run this session is, such as 2/4", "N/OF")
ATTEMPT = Setting("attempt", "record results as retries of the run: 2 or higher", "N")

DYNAMIC = Setting(
    "dynamic", "sizes: auto (symbolic once they have changed), yes (symbolic at once), no (never)", "auto|yes|no"
)
MODE = Setting("mode", "mode of torch.compile for whatever asks for none itself, such as reduce-overhead", "NAME")
TIMEOUT = Setting("timeout", "fail a test that takes longer under one backend, as CRASH", "SECONDS")
ISOLATE = Setting(
    "isolate",
    "run tests in a process of their own (pytest-xdist), which is replaced where one ends it: a native crash, a hang "
    "with --compile-timeout, a lack of memory",
    "",
    "flag",
)
KNOWN = Setting("known", "file of known failures, each strict: an entry that passes fails the run", "FILE")
UPDATE_KNOWN = Setting("update-known", "write that file anew from this run", "", "flag")
PROFILE = Setting("profile", "take the options that compile_profiles in the ini file gives under this name", "NAME")
PROFILES_INI = "compile_profiles"

SETTINGS = (
    BACKENDS,
    COMPILERS,
    BOUNDARY,
    TARGET,
    REQUIRE,
    GRAD,
    RNG,
    TOLD,
    DYNAMIC,
    MODE,
    IGNORE,
    TIMEOUT,
    ISOLATE,
    KNOWN,
    UPDATE_KNOWN,
    MINIFY,
    MUTATE,
    MUTATE_SCORE,
    DATABASE,
    REPORT,
    PROFILE,
    *(KIND, SUITE, RUN, SHARD, ATTEMPT),
)


def add_settings(parser: pytest.Parser) -> None:
    """Declare every setting to pytest, as an option and as an ini entry."""
    group = parser.getgroup("plumbline", "judge compiled code (plumbline)")
    for setting in SETTINGS:
        how: dict[str, Any] = {"dest": setting.dest, "default": None, "help": setting.help}
        if setting.kind == "flag":
            how |= {"action": "store_const", "const": "yes"}
        else:
            how["metavar"] = setting.metavar
        if setting.kind == "list":
            how["action"] = "append"
        if setting.kind == "optional":
            how |= {"nargs": "?", "const": ""}
        group.addoption(setting.option, **how)
        if setting.kind == "list":
            parser.addini(setting.ini_name, setting.help, type="linelist", default=[])
        else:
            parser.addini(setting.ini_name, setting.help, default=None)
    parser.addini(PROFILES_INI, "named sets of options, one a line: `nightly: --compile-backends=all`", "linelist", [])


def setting_value(config: pytest.Config, setting: Setting) -> Any:
    """Return the command line's value, else the chosen profile's, else the ini file's, else None; lists are joined."""
    option = _typed(config, setting)
    entry = config.getini(setting.ini_name)
    chosen = _of_profile(config, setting) if setting is not PROFILE else None
    if setting.kind == "list":
        return [*(entry or []), *(chosen or []), *(option or [])]
    return next((value for value in (option, chosen, entry) if value is not None), None)


def profiles(config: pytest.Config) -> dict[str, str]:
    """Return the options of each profile of the ini file, as text."""
    lines = (line.partition(":") for line in config.getini(PROFILES_INI))
    return {name.strip(): options.strip() for name, _, options in lines}


def profile_words(config: pytest.Config) -> list[str]:
    """Return the options of the chosen profile, split; none where no profile is chosen or it does not exist."""
    name = setting_value(config, PROFILE)
    return profiles(config).get(name, "").split() if name else []


def is_on(config: pytest.Config) -> bool:
    """Return whether backends are chosen, by an option, a profile or the ini file; cheap, for every session."""
    typed = _typed(config, BACKENDS)
    chosen = setting_value(config, BACKENDS)
    return bool(chosen is not None and chosen.strip() != "none" and (chosen.strip() or typed is not None))


def stray_option(config: pytest.Config) -> str | None:
    """Return an option of ours that was typed although no backend is chosen, None without one."""
    if getattr(config.option, BACKENDS.dest, None) is not None:
        return None
    typed = (s.option for s in SETTINGS if s is not BACKENDS and getattr(config.option, s.dest, None) is not None)
    return next(typed, None)


def _typed(config: pytest.Config, setting: Setting) -> Any:
    """Return what was typed; before pytest has read the whole command line, from what it knows by then."""
    option = getattr(config.option, setting.dest, None)
    return getattr(getattr(config, "known_args_namespace", None), setting.dest, None) if option is None else option


def _of_profile(config: pytest.Config, setting: Setting) -> Any:
    values = []
    for word in profile_words(config):
        name, _, value = word.partition("=")
        if name == setting.option:
            values.append("yes" if setting.kind == "flag" else value)
    if setting.kind == "list":
        return values
    return values[-1] if values else None
