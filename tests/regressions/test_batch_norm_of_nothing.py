"""Eager refuses statistics of no elements; the kernel that graphs call divided by zero and ended the process."""

import subprocess
import sys

import pytest

SCRIPT = """
import torch, plumbline

def f(x, weight, mean):
    return torch.native_batch_norm(x, weight, weight, mean, mean + 1, True, 0.5, 1e-05)

try:
    plumbline.compile(f, backend={backend!r})(torch.ones(0, 1), torch.ones(1), torch.zeros(1))
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
def test_statistics_of_nothing_are_refused(backend):
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(backend=backend)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "at least one element" in done.stdout
