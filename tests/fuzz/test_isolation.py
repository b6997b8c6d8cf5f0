"""A child of a workshop runs kernels that threads would share, whatever threads its parent has started."""

import os
import subprocess
import sys

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
