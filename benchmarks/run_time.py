"""Run time of generated kernels against eager, and against torch.compile when asked, in one run.

    python benchmarks/run_time.py [--stock] [--only K1,K2] [--seconds 0.5] [--threads 1]

CPU microseconds (process time: all threads), minimum over interleaved repetitions.  Kernels K1 to K7: a pointwise
chain, softmax, layer norm forward and backward, an MLP block, cross entropy forward and backward, transpose with
broadcast, and a bfloat16 chain.  Compiling a kernel under stock takes some seconds each.
"""

import argparse
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

from plumbline.compiler.base.events import KernelBuilt, recording
from plumbline.compiler.base.options import options_from_environment
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.native import compile_graph, extra_decompositions

Program = Callable[..., object]


def k1(x: torch.Tensor, y: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Gelu of a product and a sum, times a tanh, 1M elements."""
    return F.gelu(x * y + b) * torch.tanh(x)


def k2(x: torch.Tensor) -> torch.Tensor:
    """Softmax of 4096 rows of 1024."""
    return x.softmax(-1)


def k3(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Layer norm forward and backward, 4096 rows of 1024."""
    with torch.enable_grad():
        inputs = [t.detach().requires_grad_() for t in (x, w, b)]
        y = F.layer_norm(inputs[0], [x.shape[-1]], inputs[1], inputs[2])
        return (y.detach(), *torch.autograd.grad(y, inputs, g))


def k4(x: torch.Tensor, w1: torch.Tensor, b1: torch.Tensor, w2: torch.Tensor, b2: torch.Tensor) -> torch.Tensor:
    """Layer norm, two linear layers, gelu and a residual, 64 rows of 256."""
    return x + F.linear(F.gelu(F.linear(F.layer_norm(x, [256]), w1, b1)), w2, b2)


def k5(x: torch.Tensor, t: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Cross entropy forward and backward, 1024 rows of 8192 classes."""
    with torch.enable_grad():
        inside = x.detach().requires_grad_()
        loss = F.cross_entropy(inside, t)
        return loss.detach(), *torch.autograd.grad(loss, inside)


def k6(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Transpose, broadcast add and relu, 1024 by 1024."""
    return (x.t() + b).relu().contiguous()


def k7(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A bfloat16 chain, 1M elements."""
    return (x * y + x).sigmoid() * y


def kernels() -> dict[str, tuple[Program, tuple[torch.Tensor, ...]]]:
    """Return programs and inputs by name."""
    torch.manual_seed(0)
    n, half = torch.randn, torch.bfloat16
    return {
        "K1": (k1, (n(1 << 20), n(1 << 20), n(1 << 20))),
        "K2": (k2, (n(4096, 1024),)),
        "K3": (k3, (n(4096, 1024), n(1024), n(1024), n(4096, 1024))),
        "K4": (k4, (n(64, 256), n(1024, 256), n(1024), n(256, 1024), n(256))),
        "K5": (k5, (n(1024, 8192), torch.randint(0, 8192, (1024,)))),
        "K6": (k6, (n(1024, 1024), n(1024))),
        "K7": (k7, (n(1 << 20).to(half), n(1 << 20).to(half))),
    }


def fastest(calls: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Return the least CPU microseconds of each call, repetitions interleaved."""
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    end = time.perf_counter() + seconds * len(calls)
    while time.perf_counter() < end:
        for name, call in calls.items():
            start = time.process_time_ns()
            call()
            best[name] = min(best[name], (time.process_time_ns() - start) / 1e3)
    return best


def main() -> None:
    """Print one line per kernel."""
    parser = argparse.ArgumentParser(description="run time of generated kernels")
    parser.add_argument("--stock", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    options = options_from_environment().replace(strict=True)
    for name, (program, inputs) in kernels().items():
        if arguments.only and name not in arguments.only.split(","):
            continue
        start = time.process_time()
        with recording() as events:
            compiled = compile_graph(trace(program, inputs, decompositions=extra_decompositions()), inputs, options)
        spent = time.process_time() - start
        count = sum(event.kernels for event in events if isinstance(event, KernelBuilt))
        calls: dict[str, Callable[[], object]] = {
            "eager": lambda program=program, inputs=inputs: program(*inputs),  # type: ignore[misc]  # bound now
            "ours": lambda compiled=compiled, inputs=inputs: compiled(*inputs),  # type: ignore[misc]  # bound now
        }
        if arguments.stock:
            stock = torch.compile(program)
            calls["stock"] = lambda stock=stock, inputs=inputs: stock(*inputs)  # type: ignore[misc]  # bound now
        found = fastest(calls, arguments.seconds)
        words = "  ".join(f"{kind} {value:9.0f} us" for kind, value in found.items())
        ratio = f"  ours/stock {found['ours'] / found['stock']:.2f}" if "stock" in found else ""
        print(
            f"{name}  {words}  ours/eager {found['ours'] / found['eager']:.2f}{ratio}"
            f"  kernels {count}  python {spent:.2f} s"
        )


if __name__ == "__main__":
    main()
