import faulthandler
import os
import signal
import time

import pytest

from plumbline.minifier.sandbox import TOO_LATE, in_child, not_longer_than


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


def waits_under_a_limit():
    with not_longer_than(0.2):
        time.sleep(60)


def test_a_block_with_a_limit_ends_the_child():
    assert in_child(waits_under_a_limit, seconds=30).death == TOO_LATE


def test_a_block_with_a_limit_ends_the_child_of_a_run_with_a_watchdog():
    faulthandler.dump_traceback_later(60)  # as pytest does under faulthandler_timeout; its thread is not forked
    try:
        assert in_child(waits_under_a_limit, seconds=30).death == TOO_LATE
    finally:
        faulthandler.cancel_dump_traceback_later()


def test_timers_of_the_program_go_on_behind_a_block_with_a_limit():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with not_longer_than(30):
            pass
        time.sleep(0.3)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert rung == [1]
