"""How the first call grows with the size of a program: CPU seconds (with the C compiler) per operator.

    python benchmarks/compile_scaling.py [--backend NAME ...] [--shape NAME ...] [--operators N ...] [--stock]

Shapes: blocks of a model with parameters, one long chain, many results, writes to one tensor, pieces of tensors put
together, sums of everything, a list of inputs.  Each size has a process of its own, with empty caches.  `growth` is
the cost per operator over that at the smallest size: 1 where the time is linear.  `--stock` runs torch.compile beside.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Program = tuple[Callable[..., Any], tuple[Any, ...]]


class Block(nn.Module):
    """Five operators, four parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the input with a change added."""
        return x + torch.relu(self.norm(self.inner(x))) * 0.5


def blocks(count: int) -> Program:
    """Return a model of many blocks."""
    return nn.Sequential(*(Block() for _ in range(count // 5))), (torch.randn(2, 4),)


def chain(count: int) -> Program:
    """Return one long chain of elementwise operators."""

    def program(x: torch.Tensor) -> torch.Tensor:
        for _ in range(count // 2):
            x = x.sin() * 1.01
        return x

    return program, (torch.randn(64),)


def results(count: int) -> Program:
    """Return a program with many results."""

    def program(x: torch.Tensor) -> list[torch.Tensor]:
        return [(x + number).cos() for number in range(count // 2)]

    return program, (torch.randn(64),)


def writes(count: int) -> Program:
    """Return a program that writes to the rows of one tensor."""

    def program(x: torch.Tensor) -> torch.Tensor:
        table = torch.zeros(8, x.numel())
        for number in range(count // 3):
            table[number % 8].add_(x * number)
        return table

    return program, (torch.randn(16),)


def pieces(count: int) -> Program:
    """Return a program that takes tensors apart and puts them together."""

    def program(x: torch.Tensor) -> torch.Tensor:
        for _ in range(count // 5):
            first, second = x.chunk(2)
            x = torch.cat([second.tanh(), first + 1])
        return x

    return program, (torch.randn(64),)


def sums(count: int) -> Program:
    """Return a program of sums that each later step reads."""

    def program(x: torch.Tensor) -> torch.Tensor:
        for _ in range(count // 3):
            x = x / (1 + x.abs().sum())
        return x

    return program, (torch.randn(64),)


def inputs(count: int) -> Program:
    """Return a program of many inputs."""

    def program(xs: list[torch.Tensor]) -> torch.Tensor:
        total = xs[0]
        for x in xs[1:]:
            total = total + x * 2
        return total

    return program, ([torch.randn(16) for _ in range(count // 2)],)


SHAPES: dict[str, Callable[[int], Program]] = {
    made.__name__: made for made in (blocks, chain, results, writes, pieces, sums, inputs)
}


def first_call(compiler: str, backend: str, shape: str, count: int) -> float:
    """Compile and call one program in this process; return the CPU seconds, those of child processes with them."""
    if compiler == "stock":
        compile_program = torch.compile
    else:
        import plumbline  # each process loads one compiler

        compile_program = plumbline.compile
    compile_program(lambda x: x.sin() + 1, backend=backend)(torch.randn(3, requires_grad=True)).sum().backward()
    program, arguments = SHAPES[shape](count)
    compiled = compile_program(program, backend=backend)
    before = _seconds()
    compiled(*arguments)
    return _seconds() - before


def _seconds() -> float:
    each = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in each)


def _apart(compiler: str, backend: str, shape: str, count: int) -> float | None:
    """Return the seconds of a process of its own, None if it fails."""
    with tempfile.TemporaryDirectory() as caches:
        variables = {
            "PLUMBLINE_CACHE_DIRECTORY": caches,
            "TORCHINDUCTOR_CACHE_DIR": caches,
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, __file__, "--one", compiler, backend, shape, str(count)]
        ended = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    return float(ended.stdout.split()[-1]) if ended.returncode == 0 else None


def main() -> None:
    """Print a row for each compiler, backend and shape."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--backend", nargs="+", default=["eager", "aot_eager", "inductor"])
    parser.add_argument("--shape", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--operators", type=int, nargs="+", default=[200, 800, 3200])
    parser.add_argument("--stock", action="store_true", help="torch.compile beside ours")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        compiler, backend, shape, count = chosen.one
        print(first_call(compiler, backend, shape, int(count)))
        return
    heads = "".join(f"{count:>22}" for count in chosen.operators)
    print(f"{'compiler':9}{'backend':10}{'shape':8}{heads}   growth")
    for backend in chosen.backend:
        for shape in chosen.shape:
            for compiler in ("ours", "stock") if chosen.stock else ("ours",):
                cells, costs = "", []
                for count in chosen.operators:
                    seconds = _apart(compiler, backend, shape, count)
                    costs.append(seconds / count if seconds is not None else None)
                    shown = f"{seconds:8.2f} s {seconds / count * 1000:6.2f} ms" if seconds is not None else "fails"
                    cells += f"{shown:>22}"
                known = costs[0] and costs[-1]
                growth = f"{costs[-1] / costs[0]:8.2f}" if known else ""
                print(f"{compiler:9}{backend:10}{shape:8}{cells} {growth}", flush=True)


if __name__ == "__main__":
    main()
