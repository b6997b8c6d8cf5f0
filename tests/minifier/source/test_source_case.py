"""A program as a case: which names it reads that nothing binds."""

import pytest

from plumbline.minifier.source.source_case import source_case, unbound_names


@pytest.mark.parametrize(
    "text",
    [
        "import torch.nn as nn\nnn.Linear(1, 1)",
        "import torch.nn\ntorch.ones(1)",
        "def f(a, *b, c=1, **d):\n    return a, b, c, d\nf(1)",
        "for x in range(3):\n    print(x)",
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    print(error)",
        "match [1, 2]:\n    case [a, *b]:\n        print(a, b)",
        "if (n := 3):\n    print(n, __file__)",
        "from os import *\nprint(getcwd())",
        "class A:\n    def m(self):\n        return __class__\nA()",
    ],
)
def test_a_program_that_binds_its_names(text: str) -> None:
    assert not unbound_names(source_case(text))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("print(x)", {"x"}),
        ("def f():\n    return g()\nf()", {"g"}),
        ("x: int\nx.y.z = other", {"other"}),
        ("del x", set()),
    ],
)
def test_a_name_that_nothing_binds(text: str, names: set[str]) -> None:
    assert unbound_names(source_case(text)) == names
