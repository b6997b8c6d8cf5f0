import pytest

from support.plugin_runs import PluginRuns


@pytest.fixture
def runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> PluginRuns:
    """pytest inside pytest, with the fake judge."""
    return PluginRuns(pytester, monkeypatch, fake=True)
