"""Programs of several processes that talk by gloo over the loopback interface."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing
from torch import distributed

SECONDS = 120  # a rank that waits longer for the others fails


def run_ranks(program: Callable[[int, int], Any], world: int, folder: Path) -> list[Any]:
    """Run `program(rank, world)` in as many processes and return what each gave, in the order of ranks.

    program: a function of a module that can be imported.  folder: an empty one, in which they meet.
    """
    context = torch.multiprocessing.get_context("spawn")
    processes = [context.Process(target=_rank, args=(program, rank, world, folder)) for rank in range(world)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(2 * SECONDS)
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
    assert codes == [0] * world, f"the ranks ended with {codes}"
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(world)]


def _rank(program: Callable[[int, int], Any], rank: int, world: int, folder: Path) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    store = distributed.FileStore(str(folder / "store"), world)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=timedelta(seconds=SECONDS))
    result = program(rank, world)
    torch.save(result, folder / f"{rank}.pt")
    distributed.destroy_process_group()
