"""A child of a workshop runs kernels that threads would share, whatever threads its parent has started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import torch
from plumbline.fuzz.findings import TrialResult
from plumbline.fuzz.isolation import Workshop
from plumbline.oracle.verdict import Verdict, VerdictKind

torch.set_num_threads(2)
torch.randn(1_000_000).sin()  # starts the threads of this process


def attempt(example, backend):
    large = torch.nn.functional.avg_pool2d(torch.randn(4, 4, 200, 200), 3).sum() + torch.randn(1_000_000).sin().sum()
    return TrialResult(Verdict(VerdictKind.EQUAL, str(large.ndim)))


with Workshop(attempt, seconds=60) as workshop:
    print(workshop.try_one("large"))
"""


def test_large_kernels_do_not_wait_for_threads_of_the_parent():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "EQUAL" in done.stdout, done.stdout + done.stderr


ENDLESS = """
import os
from plumbline.fuzz.isolation import Workshop


def attempt(example, backend):
    print(os.getpid(), flush=True)
    while True:
        pass


with Workshop(attempt, seconds=600) as workshop:
    workshop.try_one("endless")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's death")
def test_an_endless_example_ends_with_the_parent():
    parent = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    for _ in range(200):
        if not _runs(child):
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        pytest.fail("the child runs on")


def _runs(process: int) -> bool:
    """Return whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
