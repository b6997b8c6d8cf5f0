"""A function written in C that a class holds was taken for a method: `class Block: act = torch.relu` raised."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
import collections
import math

class Block(torch.nn.Module):
    act = torch.relu
    root = math.sqrt
    count = len

    def forward(self, x):
        return self.act(x) * self.root(4.0) + self.count([1])

class Plain:
    act = torch.sin

class Derived(Plain):
    def both(self, x):
        return super().act(x), self.act is Plain.act is torch.sin

block = Block()
plain = Derived()
text = collections.UserString('ab')

def step(x):
    return TEXT, x + 1
"""
TEXTS = (
    "block(x)",
    "plain.act(x)",
    "plain.act, Plain.act, block.root",
    "plain.both(x)",
    "text.maketrans({'a': 'b'})",
    "text.maketrans(*({},))",
    "print(plain.act), plain.act(x)",
)


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_not_bound(text):
    assert difference_of(PROGRAM.replace("TEXT", text)) == ""


def test_another_one_is_noticed():
    history = ("r0 = step(x0)", "Plain.act = torch.cos", "r1 = step(x0)", "Plain.act = abs", "r2 = step(x1)")
    assert difference_of(PROGRAM.replace("TEXT", "plain.act(x)"), history) == ""
