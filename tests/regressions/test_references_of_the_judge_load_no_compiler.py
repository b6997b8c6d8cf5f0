"""A judged call whose bits differ must not load stock's compiler: it took a second, and every operator went through it.

torch wraps the method of each dispatch mode, and its reference implementations, in a function that imports the compiler
to ask to be left alone.
"""

import subprocess
import sys

PROGRAM = """
import sys
import torch
from torch.nn import functional
from plumbline.oracle import check

torch.manual_seed(0)
x, weight = torch.randn(4, 8), torch.ones(8, requires_grad=True)

def program(x, weight):
    return functional.layer_norm(functional.gelu(x @ x.t() @ x), (8,), weight)

def otherwise(x, weight):
    y = functional.gelu(x @ (x.t() @ x))
    centred = y - y.mean(-1, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(-1, keepdim=True) + 1e-5) * weight

verdict = check(program, (x, weight), compiled=otherwise)
wrong = check(program, (x, weight), compiled=lambda x, weight: program(x, weight) * 1.001)
print(verdict.failed, wrong.failed, "torch._dynamo" in sys.modules)
"""


def test_a_call_whose_bits_differ_loads_no_compiler():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]
