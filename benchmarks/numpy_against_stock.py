"""Compiled NumPy functions beside stock `torch.compile` and NumPy: the headline function, and small arrays.

    python benchmarks/numpy_against_stock.py [--seconds 1] [--without-stock]

CPU microseconds (process time), one thread, minimum over repetitions in turns.  The headline function sums outer
products of two arrays of 1024 by 64; small functions take arrays of 4 to 65536 elements.  Beside ours, `compiled` has
what compiled code takes where no call is left to NumPy (`numpy_threshold=0`).  The last three lines: ours by stock's
time of the headline function; ours by NumPy's at most, with the call that it was; and what the wrapper of a call that
is left to NumPy adds, in microseconds.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

import plumbline

Program = Callable[..., object]
SIZES = (4, 64, 1024, 4096, 8192, 16384, 65536)


def headline(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Sum the outer products of rows."""
    return np.sum(x[:, :, None] * y[:, None, :], axis=(-2, -1))


def arithmetic(x: np.ndarray) -> np.ndarray:
    """Do a few operations on each element."""
    return np.sqrt(x * x + 1.0) - x


def reduction(x: np.ndarray) -> object:
    """Reduce to a number."""
    return (x - x.mean()).std()


def pieces(x: np.ndarray) -> np.ndarray:
    """Index, join and take apart."""
    return np.concatenate([x[1:], x[:1]]) + np.where(x > 0, x, 0.0)


def product(x: np.ndarray) -> np.ndarray:
    """Multiply a matrix by its transpose."""
    matrix = x.reshape(-1, 4)
    return matrix.T @ matrix


SMALL = (arithmetic, reduction, pieces, product)


def least_times(runs: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Return the least microseconds of each run, taken in turns."""
    counts = {}
    for name, run in runs.items():
        for _ in range(20):  # compile, and let Python's own caches settle
            run()
        start = time.process_time()
        run()
        run()
        counts[name] = max(1, int(0.002 / max((time.process_time() - start) / 2, 1e-7)))
    best = dict.fromkeys(runs, float("inf"))
    end = time.process_time() + seconds
    while time.process_time() < end:
        for name, run in runs.items():
            start = time.process_time()
            for _ in range(counts[name]):
                run()
            best[name] = min(best[name], (time.process_time() - start) / counts[name] * 1e6)
    return best


def small_runs(function: Program, values: np.ndarray) -> dict[str, Callable[[], object]]:
    """Return the calls of one function of one array that are compared."""
    ours = plumbline.compile(function)
    always = plumbline.compile(function, options={"numpy_threshold": 0, "dynamic_shapes": False, "recompile_limit": 99})
    return {"numpy": lambda: function(values), "ours": lambda: ours(values), "compiled": lambda: always(values)}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--without-stock", action="store_true")
    settings = parser.parse_args()
    torch.set_num_threads(1)
    generator = np.random.default_rng(0)
    x, y = (generator.standard_normal((1024, 64)) for _ in range(2))
    ours = plumbline.compile(headline)
    runs: dict[str, Callable[[], object]] = {"numpy": lambda: headline(x, y), "ours": lambda: ours(x, y)}
    if not settings.without_stock:
        stock = torch.compile(headline)
        runs["stock"] = lambda: stock(x, y)
    found = least_times(runs, settings.seconds)
    print("headline ", "  ".join(f"{name} {value:.0f}" for name, value in found.items()))
    worst, wrapper = (0.0, ""), float("inf")
    for function in SMALL:
        for size in SIZES:
            times = least_times(small_runs(function, generator.standard_normal(size)), settings.seconds / 8)
            name = f"{function.__name__} of {size}"
            print(f"{name:<20}", "  ".join(f"{each} {value:.2f}" for each, value in times.items()))
            worst = max(worst, (times["ours"] / times["numpy"], name))
            wrapper = min(wrapper, times["ours"] - times["numpy"]) if size == SIZES[0] else wrapper
    if "stock" in found:
        print(f"headline, ours by stock: {found['ours'] / found['stock']:.2f}")
    print(f"ours by numpy, at most: {worst[0]:.2f} ({worst[1]})")
    print(f"the wrapper: {wrapper:.2f}")


if __name__ == "__main__":
    main()
