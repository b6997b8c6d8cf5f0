"""Tests of engines leave no thread in their process: other tests compare the state of the process before and after."""

import threading

import pytest

JOIN_SECONDS = 5


@pytest.fixture(scope="module", autouse=True)
def no_thread_left():
    """Fail where the tests of a file leave a thread that does not end."""
    before = set(threading.enumerate())
    yield
    after = set(threading.enumerate()) - before
    for thread in after:
        thread.join(JOIN_SECONDS)
    assert not [thread.name for thread in after if thread.is_alive()]
