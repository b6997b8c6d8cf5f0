"""Local workers: results in order and once each, whatever the times and deaths of workers."""

from contextlib import closing

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.minifier.engines import local_engine
from plumbline.minifier.engines.local_engine import AHEAD, MOST_LOSSES, LocalEngine
from support.engine_tasks import Deadly, Kept, Raising, Square


def test_results_come_in_the_order_of_the_tasks():
    with LocalEngine(3) as engine:
        slow_first = [Square(n, 0.2 if n % 5 == 0 else 0.0) for n in range(23)]
        assert list(engine.results(slow_first)) == [n * n for n in range(23)]
        assert list(engine.results([])) == []


def test_tasks_are_read_a_few_ahead_of_the_results():
    read = []

    def tasks():
        for number in range(1000):
            read.append(number)
            yield Square(number)

    with LocalEngine(2) as engine, closing(engine.results(tasks())) as results:
        assert [next(results) for _ in range(5)] == [0, 1, 4, 9, 16]
        assert len(read) <= 5 + AHEAD * 2


def test_a_result_may_ask_more_of_the_same_workers(tmp_path):
    with LocalEngine(2) as engine:
        asked = [
            (result, list(engine.results([Square(result), Square(result + 1, 0.05)])))
            for result in engine.results([*map(Square, range(12)), Deadly(tmp_path, 2)])
        ]
        results = [*(number**2 for number in range(12)), 2]
        assert asked == [(result, [result**2, (result + 1) ** 2]) for result in results]


def test_a_worker_that_dies_is_replaced_and_its_task_runs_again(tmp_path):
    with LocalEngine(2) as engine:
        tasks = [*map(Square, range(4)), Deadly(tmp_path, 3), *map(Square, range(4))]
        assert list(engine.results(tasks)) == [0, 1, 4, 9, 3, 0, 1, 4, 9]


def test_a_task_that_kills_every_worker_is_named(tmp_path):
    with LocalEngine(1) as engine:
        with pytest.raises(UserError, match="cannot be run"):
            list(engine.results([Deadly(tmp_path, MOST_LOSSES)]))
        assert list(engine.results([Square(3)])) == [9]


def test_an_exception_of_a_task_is_told_and_workers_serve_on():
    with LocalEngine(1) as engine:
        with pytest.raises(RuntimeError, match="not this one"):
            list(engine.results([Square(1), Raising(), Square(2)]))
        assert list(engine.results([Square(3)])) == [9]


def test_results_that_are_not_wanted_leave_no_answers_behind():
    with LocalEngine(2) as engine:
        with closing(engine.results([Square(1), Square(2, 5.0), Square(3)])) as results:
            assert next(results) == 1
        assert list(engine.results([Square(5), Square(6)])) == [25, 36]


@pytest.mark.parametrize(("seconds", "served_on"), [(0.3, True), (60.0, False)])
def test_a_worker_may_finish_what_nobody_wants_if_that_is_soon(monkeypatch, seconds, served_on):
    monkeypatch.setattr(local_engine, "GRACE_SECONDS", 1.0)
    with LocalEngine(1) as engine:
        with closing(engine.results([Kept("a"), Square(2, seconds)])) as results:
            worker, count = next(results)
        ((after, _),) = engine.results([Kept("a")])
        assert (count, after == worker) == (1, served_on)


def test_a_worker_keeps_what_tasks_ask_for():
    with LocalEngine(1) as engine:
        (first, one), (second, two), (third, three) = engine.results([Kept("a"), Kept("a"), Kept("b")])
    assert first == second == third
    assert (one, two, three) == (1, 2, 1)
