"""Workers of a Dask cluster: the same results; a cluster that is not there is one line."""

from contextlib import closing

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.fuzz.engines.engine_places import find_engine
from support.engine_tasks import Deadly, Kept, Raising, Square

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def place():
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, protocol="tcp://"
    ) as cluster:
        yield cluster.scheduler_address.replace("tcp", "dask")


def test_results_come_in_order_and_once(place, tmp_path):
    with find_engine(place) as engine:
        tasks = [*map(Square, range(9)), Deadly(tmp_path, 2), *map(Square, range(9))]
        squares = [n * n for n in range(9)]
        assert list(engine.results(tasks)) == [*squares, 2, *squares]
        workers = {worker for worker, _ in engine.results([Kept("a")] * 6)}
        assert len(workers) <= 2
        with closing(engine.results(map(Square, range(1000)))) as results:
            assert next(results) == 0


def test_an_exception_of_a_task_is_told(place):
    with find_engine(place) as engine, pytest.raises(RuntimeError, match="not this one"):
        list(engine.results([Raising()]))


def test_nobody_answers(monkeypatch):
    monkeypatch.setattr("plumbline.fuzz.engines.dask_engine.CONNECT_SECONDS", 0.2)
    with pytest.raises(UserError, match="no Dask scheduler answers"):
        find_engine("dask://127.0.0.1:9")
