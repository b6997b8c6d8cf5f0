"""How much of the time in which gradients are sent is hidden behind the backward, by DistributedDataParallel's clock.

Ten linear layers of 512, batch 64 (the study's) or another, buckets of 2 MB, gloo on the loopback interface. Three
models take turns in each process: eager, compiled with the backward in one piece (`ddp_stages=False`), and compiled
with it in stages. Counted are all steps but the first five, of rank 0; the share is the sum of overlap over the sum of
communication. No more can be hidden than the backward computes, which is printed beside it.

    python benchmarks/distributed_overlap.py [--processes 4] [--steps 25] [--batch 256]
"""

import argparse
import tempfile

import torch
import torch.multiprocessing
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import plumbline

WARM = 5


def make_model() -> nn.Module:
    """Return ten layers, the same in each process."""
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(10)))


def make_models() -> dict[str, DistributedDataParallel]:
    """Return the three models by name."""
    models = {"eager": make_model()}
    for name, stages in (("one piece", False), ("stages", True)):
        models[name] = plumbline.compile(make_model(), fullgraph=True, options={"ddp_stages": stages})
    return {name: DistributedDataParallel(model, bucket_cap_mb=2) for name, model in models.items()}


def run(rank: int, world: int, store: str, steps: int, batch: int) -> None:
    """Measure in one process; rank 0 prints."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", store=distributed.FileStore(store, world), rank=rank, world_size=world)
    models = make_models()
    times: dict[str, list[tuple[float, ...]]] = {name: [] for name in models}
    for step in range(steps):
        for name, model in models.items():
            torch.manual_seed(1000 * rank + step)
            model(torch.randn(batch, 512)).square().mean().backward()
            data = model._get_ddp_logging_data()
            keys = ("backward_compute_comm_overlap_time", "backward_comm_time", "backward_compute_time")
            if step >= WARM:
                times[name].append(tuple(data.get(key, 0) / 1e6 for key in keys))
    if rank == 0:
        for name, pairs in times.items():
            overlap, sending, computing = (sum(part) for part in zip(*pairs, strict=True))
            share, mean = overlap / sending, 1 / len(pairs)
            print(
                f"{name:10} {overlap * mean:7.1f} of {sending * mean:7.1f} ms: {share:.0%} "
                f"(the backward computes {computing * mean:.1f})"
            )
    distributed.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        arguments = (given.processes, f"{folder}/store", given.steps, given.batch)
        torch.multiprocessing.spawn(run, args=arguments, nprocs=given.processes)
