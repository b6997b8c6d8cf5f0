"""Runs pytest inside pytest with the plugin on."""

import importlib
from typing import Any

import pytest
from _pytest.pytester import SysModulesSnapshot

from support.fake_judge import COMPILERS, FakeSession
from support.other_plugins import WITHOUT_OTHERS

# Loaded once here: patches must stick to one module.
for preloaded in ("torch", "plumbline.pytest_plugin.active", "plumbline.pytest_plugin.rewriting.call_boundary"):
    importlib.import_module(preloaded)

QUIET = (*WITHOUT_OTHERS, "-p", "no:cacheprovider")
WRITTEN = ("test_", "mylib", "conftest", "broken_module")  # what tests write; all other modules outlive an inner run


def keep_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pytester forget only what tests wrote: it forgets all that an inner run imports, and torch loads once."""
    snapshot = SysModulesSnapshot.__init__

    def preserving(self: SysModulesSnapshot, preserve: object = None) -> None:
        del preserve
        snapshot(self, lambda name: not name.startswith(WRITTEN))

    monkeypatch.setattr(SysModulesSnapshot, "__init__", preserving)


class PluginRuns:
    """A pytester with the plugin's fake judge in place; `run` is `pytest` in its directory."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *, fake: bool) -> None:
        self.pytester = pytester
        self.sessions = FakeSession.opened
        self.sessions.clear()
        self.fake = fake
        if fake:
            monkeypatch.setattr("plumbline.pytest_plugin.judged_run.open_session", FakeSession)
            monkeypatch.setattr("plumbline.pytest_plugin.active.available_compilers", lambda: COMPILERS)
        monkeypatch.setenv("COLUMNS", "200")  # the short summary must not be cut

    def write(self, text: str, name: str = "test_it") -> None:
        """Write a test file; the fake judge's `planned` is at hand in it."""
        self.pytester.makepyfile(**{name: f"import pytest\nfrom support.fake_judge import planned\n{text}"})

    def run(self, *args: str, backends: str | None = "all", quiet: bool = True) -> pytest.RunResult:
        """Run pytest in this process; real judges, and those of xdist's workers, judge stock unless told otherwise."""
        chosen = () if backends is None else (f"--compile-backends={backends}",)
        real = not self.fake or any(arg.startswith("-n") for arg in args) or "dist" in args
        if chosen and real and not any(arg.startswith("--compile-compilers") for arg in args):
            chosen = (*chosen, "--compile-compilers=torch")
        return self.pytester.runpytest_inprocess(*(QUIET if quiet else ()), *chosen, *args)


def outcomes(result: pytest.RunResult) -> dict[str, int]:
    """Return the counts of the last summary line, VACUOUS included."""
    words: dict[str, Any] = result.parse_summary_nouns(result.outlines)
    return {word: int(count) for word, count in words.items()}
