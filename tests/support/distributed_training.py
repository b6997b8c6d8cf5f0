"""Five steps of training in several processes, eager and compiled, in every setting of DistributedDataParallel."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed._functional_collectives import all_reduce
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import plumbline

STEPS = 5
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "static graph": {"static_graph": True},
    "unused parameters": {"find_unused_parameters": True},
    "gradients in buckets": {"gradient_as_bucket_view": True},
    "one bucket": {"bucket_cap_mb": 25},
    "accumulation": {},
    "uneven sizes": {},
}
LEAST = ("plain", "unused parameters")  # settings that are built with native code, too
OF_FOUR = (*LEAST, "one bucket")
WAYS = ("compiled wrapper", "wrapped compiled")
BACKENDS = ("aot_eager", "inductor")
Found = dict[tuple[str, ...], list[torch.Tensor]]


class Net(nn.Module):
    """Linear layers with batch norm, whose buffers are broadcast, a tied weight, and a layer that may stay unused."""

    def __init__(self, uses_all: bool = True, normed: bool = True) -> None:
        super().__init__()
        self.uses_all, self.normed = uses_all, normed
        self.first, self.middle, self.last = nn.Linear(24, 24), nn.Linear(24, 24), nn.Linear(24, 24)
        self.norm, self.spare = nn.BatchNorm1d(24), nn.Linear(24, 24)
        self.last.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return three layers of x."""
        x = self.first(x).relu()
        x = self.norm(x) if self.normed else x * self.norm.weight + self.norm.bias
        x = self.spare(x).relu() if self.uses_all else x
        return self.last(self.middle(x).tanh())


def everything(rank: int, world: int) -> Found:
    """Return gradients, parameters and buffers after training, by (setting, backend, way) and (setting,) for eager."""
    return _sharded_and_collective(rank, world) | trained_everyway(rank, SETTINGS)


def least(rank: int, world: int) -> Found:
    """Return the same of a few settings, and of nothing else."""
    del world
    return trained_everyway(rank, OF_FOUR)


def trained_everyway(rank: int, settings: Iterable[str]) -> Found:
    """Return what training gives in these settings, by (setting, backend, way) and (setting,) for eager."""
    found: Found = {}
    for setting in settings:
        options = SETTINGS[setting]
        found[(setting,)] = trained(rank, setting, lambda net, o=options: _wrapped(net, o))
        for backend in BACKENDS if setting in LEAST else BACKENDS[:1]:
            for way in WAYS:
                plumbline.reset()
                found[setting, backend, way] = trained(rank, setting, _maker(way, backend, options))
    return found


def _maker(way: str, backend: str, options: dict[str, Any]) -> Callable[[nn.Module], nn.Module]:
    if way == "compiled wrapper":
        return lambda net: plumbline.compile(_wrapped(net, options), backend=backend, fullgraph=True)
    return lambda net: _wrapped(plumbline.compile(net, backend=backend, fullgraph=True), options)


def _wrapped(net: nn.Module, options: dict[str, Any]) -> nn.Module:
    return DistributedDataParallel(net, **{"bucket_cap_mb": 0.003} | options)  # a layer is a bucket


def inputs(rank: int, setting: str, step: int) -> torch.Tensor:
    """Return what a rank trains on."""
    torch.manual_seed(100 * rank + step)
    return torch.randn(8 + (rank + step if setting == "uneven sizes" else 0), 24)


def trained(
    rank: int,
    setting: str,
    make: Callable[[nn.Module], nn.Module],
    batch: Callable[[int, str, int], torch.Tensor] = inputs,
) -> list[torch.Tensor]:
    """Return gradients, parameters and buffers of a net after training."""
    torch.manual_seed(0)
    net = Net(uses_all=setting != "unused parameters", normed=setting != "plain")
    model = make(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    gradients: list[torch.Tensor] = []
    for step in range(STEPS):
        x = batch(rank, setting, step)
        waits: Any = model.no_sync() if setting == "accumulation" and step % 2 else nullcontext()
        with waits:
            model(x).square().mean().backward()
        gradients = [torch.zeros(0) if p.grad is None else p.grad.clone() for p in net.parameters()]
        if not (setting == "accumulation" and step % 2):
            optimizer.step()
            optimizer.zero_grad()
    return [*gradients, *(value.detach().clone() for value in (*net.parameters(), *net.buffers()))]


def _sharded_and_collective(rank: int, world: int) -> Found:
    """Return what modules under `fully_shard` and tensor parallelism, and functional collectives, give."""
    mesh = init_device_mesh("cpu", (world,))
    found: Found = {}

    def sharded() -> nn.Module:
        net = nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(3)))
        for layer in net:
            fully_shard(layer, mesh=mesh)
        return fully_shard(net, mesh=mesh)

    def parallel() -> nn.Module:
        net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
        return parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})

    for name, build in (("fully_shard", sharded), ("tensor parallel", parallel)):
        for backend in ("", *BACKENDS):
            torch.manual_seed(0)
            net = build()
            found[name, backend] = _steps_of(net, plumbline.compile(net, backend=backend) if backend else net, rank)
    for backend in ("", *BACKENDS):
        plain = _gathered if not backend else plumbline.compile(_gathered, backend=backend, fullgraph=True)
        torch.manual_seed(rank)
        x = torch.randn(6, requires_grad=True)
        value = plain(x)
        value.sum().backward()
        found["collectives", backend] = [value.detach() + 0, x.grad + 0]
    return found


def _gathered(x: torch.Tensor) -> torch.Tensor:
    total = all_reduce(x * 2, "sum", distributed.group.WORLD)
    return total * x + all_reduce(total + 1, "sum", distributed.group.WORLD)


def _steps_of(net: nn.Module, model: nn.Module, rank: int) -> list[torch.Tensor]:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(STEPS):
        torch.manual_seed(10 * rank + step)
        model(torch.randn(4, 16)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [p.full_tensor().detach() if hasattr(p, "full_tensor") else p.detach() for p in net.parameters()]
