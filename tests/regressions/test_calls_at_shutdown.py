"""A first call in `__del__` while the interpreter shuts down printed a TypeError: nothing can be imported then."""

import re
import subprocess
import sys

import pytest

LOGGED_BY_TORCH = re.compile(r"^W\d{4} .* triton not found.*\n", re.MULTILINE)  # its CUDA build, when it is imported
PROGRAM = """
import sys, torch, plumbline

run = plumbline.compile(lambda x: x * 2 + 1, backend={backend!r})
{before}

class Last:
    def __del__(self):
        y = run(torch.ones(3))
        print(sys.is_finalizing(), y.tolist(), flush=True)

last = Last()
"""


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("before", ["", "run(torch.ones(3))"])
def test_a_call_while_the_interpreter_shuts_down(backend, before):
    program = PROGRAM.format(backend=backend, before=before)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert LOGGED_BY_TORCH.sub("", done.stderr) == ""
    assert done.returncode == 0
    assert done.stdout.split(" ", 1) == ["True", "[3.0, 3.0, 3.0]\n"]
