"""What the plugin costs a test that has nothing to do with torch: milliseconds per test, by the slope of two sizes.

Run `python benchmarks/plugin_overhead.py`; the bar is 1 ms.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIZES = (200, 1200)
REPEATS = 3
SETTINGS = {
    "plugin absent": ["-p", "no:plumbline"],
    "plugin off": [],
    "--compile-backends=eager": ["--compile-backends=eager"],
}


def seconds(directory: Path, size: int, options: list[str]) -> float:
    """Return the wall time of one pytest process over `size` tests."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", f"test_{size}.py"]
    started = time.perf_counter()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, *options], cwd=directory, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    """Print milliseconds per test for each setting, and the difference to a run without the plugin."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for size in SIZES:
            lines = ["limit = 10", "def double(x):", "    return 2 * x"]
            for number in range(size):
                lines += [f"def test_{number}(tmp_path):", f"    assert double({number}) >= limit - 10"]
            (directory / f"test_{size}.py").write_text("\n".join(lines))
        slopes = {}
        for label, options in SETTINGS.items():
            best = {size: min(seconds(directory, size, options) for _ in range(REPEATS)) for size in SIZES}
            slopes[label] = (best[SIZES[1]] - best[SIZES[0]]) / (SIZES[1] - SIZES[0]) * 1e3
            added = slopes[label] - slopes["plugin absent"]
            print(f"{label:<28} {slopes[label]:6.3f} ms per test, {added:+6.3f} ms")


if __name__ == "__main__":
    main()
