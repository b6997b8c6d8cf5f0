"""The pytest plugin: thin hooks; each calls one function elsewhere.

pytest loads this file in every session, so it imports neither torch nor anything heavy: what runs only
with `--compile-backends` is imported inside the hooks.
"""

from collections.abc import Generator

import pytest

from .collector_pause import collector_paused
from .fixtures import compiled, declare_markers
from .settings import add_settings, is_on, stray_option

__all__ = ["compiled"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the settings."""
    add_settings(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Intercept torch.compile before a conftest or test module can use it."""
    if is_on(early_config):
        from plumbline.oracle.harness.interception_hook import install_import_interception

        install_import_interception()


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, object, object]:
    """Ask for a worker before pytest-xdist looks whether anybody has."""
    if is_on(config):
        with collector_paused():
            from .limits.worker_deaths import isolate

        isolate(config)
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Check every setting; with backends chosen, bring in the half of the plugin that works."""
    declare_markers(config)
    stray = stray_option(config)
    if stray is not None and not is_on(config):
        raise pytest.UsageError(f"{stray} does nothing alone; add --compile-backends=all")
    if is_on(config):
        with collector_paused():
            from .active import activate

        activate(config)
    elif config.getoption("lf", False) or config.getoption("failedfirst", False):
        from .variant_ids import last_failed, name_tests_alone

        name_tests_alone(last_failed(config) or {})  # what failed in a judged run runs again without the judge


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give torch.compile back."""
    if is_on(config):
        from plumbline.oracle.harness.interception_hook import uninstall_import_interception

        uninstall_import_interception()
