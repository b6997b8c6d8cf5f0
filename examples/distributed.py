"""Two processes train one model: DistributedDataParallel around a compiled module, beside eager. Takes some seconds.

    python examples/distributed.py

Prints, for each, the loss after some steps, whether the parameters are eager's, and how much of the time in which
gradients are sent other work is done.
"""

import sys
import tempfile
from collections.abc import Callable

import torch
import torch.multiprocessing
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import plumbline

WORLD, STEPS, WIDTH, LAYERS = 2, 20, 512, 8


def make_model() -> nn.Module:
    """Return a stack of layers, the same in each process."""
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(LAYERS)))


def train(rank: int, prepare: Callable[[nn.Module], nn.Module]) -> tuple[float, float, list[torch.Tensor]]:
    """Return the last loss, the share of sending that was hidden, and the parameters."""
    model = make_model()
    parallel = prepare(DistributedDataParallel(model, bucket_cap_mb=2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    hidden = sending = 0
    for step in range(STEPS):
        torch.manual_seed(1000 * rank + step)
        loss = parallel(torch.randn(64, WIDTH)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step >= 5:  # DDP arranges its buckets in the first steps
            times = parallel._get_ddp_logging_data()
            hidden += times.get("backward_compute_comm_overlap_time", 0)
            sending += times.get("backward_comm_time", 0)
    return loss.item(), hidden / max(sending, 1), [parameter.detach() for parameter in model.parameters()]


def run(rank: int, store: str) -> None:
    """Train in one process."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", store=distributed.FileStore(store, WORLD), rank=rank, world_size=WORLD)
    kinds: dict[str, Callable[[nn.Module], nn.Module]] = {
        "eager": lambda model: model,
        "aot_eager": lambda model: plumbline.compile(model, backend="aot_eager", fullgraph=True),
        "inductor": lambda model: plumbline.compile(model, fullgraph=True),
    }
    expected: list[torch.Tensor] = []
    for name, prepare in kinds.items():
        loss, hidden, parameters = train(rank, prepare)
        expected = expected or parameters
        distance = max((one - other).abs().max().item() for one, other in zip(parameters, expected, strict=True))
        if rank == 0:
            text = f"{name:10} loss {loss:.6f}, parameters off by {distance:.1e}, {hidden:.0%} of sending hidden\n"
            sys.stdout.write(text)
    distributed.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(run, args=(f"{folder}/store",), nprocs=WORLD)
