"""References of two operands name their primitive as what they wrap: the compiler was imported to leave them alone."""

import subprocess
import sys

PROGRAM = """
import sys
import torch
import plumbline

def program(x):
    assert x.sum() < 100
    return torch.where(x > 0, x, 1.0) + x.new_ones(()).to(torch.float64), x.any() & (x != 2).all()

plumbline.compile(program, backend="aot_eager", fullgraph=True)(torch.randn(3))
assert "torch._dynamo" not in sys.modules
import torch._dynamo
plumbline.compile(lambda x: (x != 2).any(), backend="aot_eager", fullgraph=True)(torch.randn(3))
"""


def test_capture_does_not_import_torchs_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
