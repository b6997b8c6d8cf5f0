"""What tests can use: the `compiled` fixture and the markers. Light: loaded in every pytest session."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from .current import current_session

MARKERS = (
    "compile_ignore(aspect, ...): aspects of compiled code that are reported but do not fail this test",
    "compile_xfail(reason='', *, backend=None, compiler=None, torch=None, strict=True): compiled code is known to be "
    "wrong here, with torch as in '<2.16'; an unexpected success fails the test when strict",
    "compile_skip(reason='', *, backend=None, compiler=None, torch=None): do not run this test under compilers",
    "compile_budget(*, graphs=None, breaks=None, recompiles=None, seconds=None, backend=None, compiler=None, "
    "torch=None): fail this test where compiling it takes more",
)


def declare_markers(config: pytest.Config) -> None:
    """Make the markers known, so that `--strict-markers` and `pytest --markers` see them."""
    for line in MARKERS:
        config.addinivalue_line("markers", line)


@pytest.fixture
def compiled() -> Callable[[Any], Any]:
    """Mark what is compiled and judged: `compiled(fn)` behaves as `fn`, and is `fn` while the plugin is off.

    fn: a function, method, module or other callable.  The returned callable is judged only when called in the
    test body, not in fixtures.
    """
    return mark_boundary


def mark_boundary(fn: Any) -> Any:
    """Return `fn` as an explicit boundary of the session that judges when it is called."""
    session = current_session()
    if session is not None:
        return session.compiled(fn)
    if not _judging_later():
        return fn

    def call(*args: Any, **kwargs: Any) -> Any:
        judge = current_session()
        return (fn if judge is None else judge.compiled(fn))(*args, **kwargs)

    return functools.update_wrapper(call, fn) if hasattr(fn, "__name__") else call


_ACTIVE_CONFIGS: list[pytest.Config] = []


def announce(config: pytest.Config) -> None:
    """Say that sessions will judge in this run; fixtures that run before one must then return late-bound wrappers."""
    _ACTIVE_CONFIGS.append(config)


def withdraw(config: pytest.Config) -> None:
    """Say that this run is over."""
    if config in _ACTIVE_CONFIGS:
        _ACTIVE_CONFIGS.remove(config)


def _judging_later() -> bool:
    return bool(_ACTIVE_CONFIGS)
