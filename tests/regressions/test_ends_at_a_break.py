"""Found by `fuzz programs`: after `stock.pop()`, `stock.clear()` ended the elements in the wrong order.

The operation at a break ends objects while the generated function still held what its guards had fetched.
"""

import pytest
import torch

import plumbline


class Ending:
    def __init__(self, name: str, ends: list[str]) -> None:
        self.name, self.ends = name, ends

    def __del__(self) -> None:
        self.ends.append(self.name)


def popped(stock, x):
    stock.pop()
    stock.clear()


def turned(stock, x):
    stock.reverse()
    stock.clear()


def longer(stock, x):
    stock.append(2)
    stock[:] = []


def shorter(stock, x):
    del stock[0]
    stock.sort(key=id)
    stock.clear()


def in_the_middle(stock, x):
    stock.append(x + 1)
    del stock[1:]
    return x * len(stock)


def within_a_block(stock, x):
    stock.pop()
    with torch.no_grad():
        stock.clear()


def within_a_handler(stock, x):
    stock.pop()
    try:
        stock.clear()
    except ValueError:
        return x


PROGRAMS = [within_a_block, within_a_handler, popped, turned, longer, shorter, in_the_middle]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_elements_end_in_the_order_of_plain_python(program) -> None:
    def ended(function) -> list[str]:
        ends: list[str] = []
        stock = [Ending("a", ends), Ending("b", ends), 1]
        function(stock, torch.ones(2))
        ends.append("returned")
        del stock
        return ends

    assert ended(plumbline.compile(program, backend="eager")) == ended(program)
