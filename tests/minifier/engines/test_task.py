"""What a worker keeps between tasks is closed when another thing is asked for, and at the end."""

from contextlib import contextmanager

from plumbline.minifier.engines.task import Bench


def test_one_thing_is_kept_and_closed():
    log = []

    @contextmanager
    def thing(name):
        log.append(f"open {name}")
        yield name
        log.append(f"close {name}")

    with Bench() as bench:
        assert [bench.keep("a", lambda: thing("a")) for _ in range(2)] == ["a", "a"]
        assert bench.keep("b", lambda: thing("b")) == "b"
        assert bench.keep("a", lambda: thing("a")) == "a"
    assert log == ["open a", "close a", "open b", "close b", "open a", "close a"]
