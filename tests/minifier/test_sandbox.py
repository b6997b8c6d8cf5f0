import os
import signal
import time

import pytest

from plumbline.minifier.sandbox import in_child


def test_an_answer_comes_back():
    assert in_child(lambda: {"a": [1, 2]}).value == {"a": [1, 2]}


def test_a_large_answer_comes_back_whole():
    assert len(in_child(lambda: b"x" * 5_000_000).value) == 5_000_000


def test_what_happens_in_the_child_stays_there():
    seen = []
    in_child(lambda: seen.append(1))
    assert seen == []


def test_a_death_is_named_with_its_place():
    def dies():
        os.kill(os.getpid(), signal.SIGSEGV)

    outcome = in_child(dies)
    assert (outcome.value, outcome.death) == (None, "SIGSEGV")
    assert outcome.site.endswith("test_sandbox.py:dies")


def test_a_hang_is_ended():
    started = time.monotonic()
    assert in_child(lambda: time.sleep(60), seconds=0.3).death == "hang"
    assert time.monotonic() - started < 10


def test_an_exit_without_an_answer_is_a_death():
    assert in_child(lambda: os._exit(7)).death == "exit 7"


def test_an_exception_is_raised_here():
    def fails():
        raise KeyError("lost")

    with pytest.raises(RuntimeError, match="KeyError: 'lost'"):
        in_child(fails)
