"""sympy is imported with large caches, unless somebody chose otherwise; the environment stays as it was."""

import os
import subprocess
import sys

import pytest

QUESTION = """
import os
import sys
import plumbline.compiler.base.torch_facts
from sympy.core.cache import SYMPY_CACHE_SIZE
print(SYMPY_CACHE_SIZE, os.environ.get("SYMPY_CACHE_SIZE"))
"""


@pytest.mark.parametrize(
    ("before", "given", "expected"),
    [("", {}, "20000 None"), ("", {"SYMPY_CACHE_SIZE": "77"}, "77 77"), ("import sympy", {}, "1000 None")],
)
def test_caches_are_large_unless_somebody_chose(before, given, expected):
    environment = {name: value for name, value in os.environ.items() if name != "SYMPY_CACHE_SIZE"} | given
    done = subprocess.run(
        [sys.executable, "-c", before + QUESTION], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == expected
