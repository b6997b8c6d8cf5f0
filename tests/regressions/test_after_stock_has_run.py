"""Stock patches nn.Module and the optimizers when it first runs; capture met its wrappers and broke at them."""

import subprocess
import sys

SCRIPT = """
import torch, plumbline

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

@torch.compile(backend="eager")
def stock():
    optimizer.step()

model(torch.ones(1, 2)).sum().backward()
stock()

def makes_a_module(x):
    return torch.nn.Softmax(-1)(x) + 1

def steps():
    optimizer.step()

for function, args in ((makes_a_module, (torch.ones(3),)), (steps, ())):
    told = str(plumbline.explain(function)(*args)).splitlines()
    print(function.__name__, [line for line in told if "mutation_guard" in line or "disabled:" in line])
"""


def test_programs_are_captured_as_before():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["makes_a_module []", "steps []"]
