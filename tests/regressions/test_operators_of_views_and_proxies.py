"""A mapping proxy compared with an object answered itself, and a view of a dictionary let the other operand answer."""

import operator
import types

import pytest

import plumbline


class Odd:
    def __eq__(self, other):
        return type(other).__name__

    def __ne__(self, other):
        return [type(other).__name__]

    __hash__ = object.__hash__

    def __or__(self, other):
        return "or"

    __ror__ = __rand__ = __rsub__ = __rxor__ = __or__


OPERATORS = [operator.eq, operator.ne, operator.or_, operator.and_, operator.sub, operator.xor]
LEFT = {
    "proxy": types.MappingProxyType({1: 2}),
    "dict": {1: 2},
    "keys": {1: 2}.keys(),
    "items": {1: 2}.items(),
    "set": {1},
}


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("name", LEFT)
@pytest.mark.parametrize("apply", OPERATORS, ids=lambda one: one.__name__)
def test_who_answers(name, apply, flip):
    left, odd = LEFT[name], Odd()

    def program(x):
        try:
            return apply(odd, left) if flip else apply(left, odd)
        except TypeError as error:
            return str(error)

    assert plumbline.compile(program, backend="eager")(1) == program(1)
