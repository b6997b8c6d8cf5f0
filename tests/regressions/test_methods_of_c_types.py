"""A method of a C type was bound without the class: for methods that ask for it, CPython reads a null pointer."""

import subprocess
import sys

SCRIPT = """
import re, torch, plumbline

def function(x):
    scanner = re.compile("a").scanner("aaba")
    return x + 1, scanner.match() is not None, scanner.match() is not None, scanner.match() is None

print(plumbline.compile(function, backend="eager")(torch.ones(1)))
"""


def test_the_process_lives():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "(tensor([2.]), True, True, True)\n"), done.stderr
