import pytest

from support.plugin_runs import PluginRuns, keep_modules


@pytest.fixture(autouse=True)
def _modules_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_modules(monkeypatch)


@pytest.fixture
def runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> PluginRuns:
    """pytest inside pytest, with the fake judge."""
    return PluginRuns(pytester, monkeypatch, fake=True)
