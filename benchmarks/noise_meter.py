"""What the noise meter costs beside eager: a perceptron of three layers of 1024, forward and backward.

    python benchmarks/noise_meter.py [--width 1024] [--batch 1024] [--repetitions 5]

Processor time of one thread, the least of the repetitions, divided by eager's.  "Recorded" is the run with its tape,
"traced" the worst output followed back to the lines as well.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import nn

from plumbline.oracle import NoiseMeter


def least(run: Callable[[], object], repetitions: int) -> float:
    """Return the least processor time of a call, in seconds."""
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print a row for forward alone and for forward with backward, in float32 and bfloat16."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    width = options.width
    for dtype in (torch.float32, torch.bfloat16):
        layers = [layer for _ in range(3) for layer in (nn.Linear(width, width), nn.GELU())]
        model = nn.Sequential(*layers).to(dtype)
        x = torch.randn(options.batch, width).to(dtype)

        def forward(model: nn.Module = model, x: torch.Tensor = x) -> torch.Tensor:
            return model(x)

        def both(model: nn.Module = model, x: torch.Tensor = x) -> list[torch.Tensor]:
            model.zero_grad()
            model(x).square().mean().backward()
            return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]

        for name, program in (("forward", forward), ("forward and backward", both)):
            eager = least(program, options.repetitions)
            recorded = least(lambda program=program: NoiseMeter(traced=0).measure(program), options.repetitions)
            traced = least(lambda program=program: NoiseMeter(traced=1).measure(program), options.repetitions)
            name = f"{str(dtype).removeprefix('torch.')}, {name}"
            print(f"{name:<32} eager {eager:.3f} s, recorded {recorded / eager:5.1f}x, traced {traced / eager:5.1f}x")


if __name__ == "__main__":
    main()
