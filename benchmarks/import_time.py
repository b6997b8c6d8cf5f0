"""How long the start-up of plumbline takes: `python benchmarks/import_time.py [--budget MILLISECONDS]`.

Imports `plumbline` and the plugin's entry in fresh interpreters and prints the median and the least time of each
import, in milliseconds, interpreter start excluded. With --budget, exits 1 when the least time is above it:
the least is what the import costs, the rest is what else the machine was doing.
"""

import argparse
import statistics
import subprocess
import sys

# The plugin's imports are measured after pytest's own, which are loaded whenever a plugin is.
CASES = {
    "plumbline": "",
    "plumbline.pytest_plugin.plugin": "import pytest",
}


def milliseconds(module: str, before: str) -> float:
    """Return the time of one import in a fresh interpreter."""
    code = f"{before}\nimport time\nstart = time.perf_counter()\nimport {module}\nprint(time.perf_counter() - start)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout) * 1e3


def main() -> int:
    """Print one line a module; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=15, help="fresh interpreters per module")
    parser.add_argument("--budget", type=float, default=None, help="milliseconds; exit 1 above it")
    options = parser.parse_args()
    above = False
    for module, before in CASES.items():
        times = [milliseconds(module, before) for _ in range(options.repeat)]
        print(f"{module:<34} median {statistics.median(times):6.1f} ms   least {min(times):6.1f} ms   of {len(times)}")
        above |= options.budget is not None and min(times) > options.budget
    return int(above)


if __name__ == "__main__":
    sys.exit(main())
