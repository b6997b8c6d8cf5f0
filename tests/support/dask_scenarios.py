"""Tasks on Dask clusters of this machine, played in a process of their own; what came of them is printed as JSON.

    python -m support.dask_scenarios

Clusters and clients leave threads in the process that starts them, which must not be one that runs other tests.
"""

import importlib
import json
import os
import signal
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

from distributed import LocalCluster

from plumbline.compiler.base.errors import UserError
from plumbline.minifier.engines import dask_engine
from plumbline.minifier.engines.engine_places import find_engine
from support.engine_tasks import Deadly, Kept, Noted, Raising, Square


def main():
    """Play everything; the first cluster lives in this process, the second has two nodes."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, protocol="tcp://"
        ) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        place = cluster.scheduler_address.replace("tcp", "dask")
        told = {**on_threads(place, Path(folder)), "error": error_of_a_task(place)}
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        told["killed"] = with_dead_nodes(cluster)
        told["imported"] = imported_by_nodes(cluster)
        told["order"] = order_of_calls(cluster)
    told["nobody"] = where_nobody_answers()
    told["no_worker"] = error_of_a_cluster(lambda cluster: None)
    told["no_scheduler"] = error_of_a_cluster(lambda cluster: cluster.close())
    json.dump(told, sys.stdout)


def on_threads(place, folder):
    """Return the results of tasks, one of which kills its process twice, and how many processes shared six tasks."""
    with find_engine(place) as engine:
        results = list(engine.results([*map(Square, range(9)), Deadly(folder, 2), *map(Square, range(9))]))
        workers = len({worker for worker, _ in engine.results([Kept("a")] * 6)})
        with closing(engine.results(map(Square, range(1000)))) as few:
            first = next(few)
    return {"results": results, "workers": workers, "first": first}


def error_of_a_task(place):
    """Return what the engine says of a task that raises."""
    with find_engine(place) as engine:
        try:
            list(engine.results([Raising()]))
        except RuntimeError as error:
            return str(error)
    return None


def with_dead_nodes(cluster):
    """Return the results of tasks during which each node's process was killed once."""
    results, nodes = [], list(cluster.workers.values())
    with find_engine(cluster.scheduler_address.replace("tcp", "dask")) as engine:
        for result in engine.results(Square(number, 0.02) for number in range(60)):
            results.append(result)
            if len(results) in (5, 30):
                os.kill(nodes.pop().process.pid, signal.SIGKILL)
    return results


def imported_by_nodes(cluster):
    """Return the results of a task whose module this one does not import, and which nodes have imported it."""
    far_task = importlib.import_module("support.far_task")
    with find_engine(cluster.scheduler_address.replace("tcp", "dask")) as engine:
        results = list(engine.results([far_task.Far()] * 4))
        found = engine._client.run(lambda: "support.far_task" in sys.modules)
    return {"results": results, "nodes": list(found.values())}


def order_of_calls(cluster):
    """Return how many tasks of a call have run when those of a call within it are all there."""
    with (
        tempfile.TemporaryDirectory() as folder,
        find_engine(cluster.scheduler_address.replace("tcp", "dask")) as engine,
    ):
        outer = engine.results(Noted(Path(folder), number, 0.2) for number in range(20))
        with closing(outer):
            next(outer)
            list(engine.results(map(Square, range(6))))
            return len(list(Path(folder).iterdir()))


def error_of_a_cluster(then):
    """Return what is said where a cluster has no worker, and something happens to it while a task waits."""
    dask_engine.WITHOUT_WORKERS_SECONDS = 2.0
    dask_engine.ASK_SECONDS = 0.2
    with LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        place = cluster.scheduler_address.replace("tcp", "dask")
        with find_engine(place) as engine:
            ending = threading.Timer(0.5, then, (cluster,))
            ending.start()
            try:
                list(engine.results([Square(1)]))
            except UserError as error:
                return str(error)
            finally:
                ending.join()
    return None


def where_nobody_answers():
    """Return what is said where no scheduler answers."""
    dask_engine.CONNECT_SECONDS = 0.2
    try:
        find_engine("dask://127.0.0.1:9")
    except UserError as error:
        return str(error)
    return None


if __name__ == "__main__":
    main()
