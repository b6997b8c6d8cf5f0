"""Methods of builtin types on instances of subclasses gave, and refused, what they do on plain instances.

C tells some of them apart: a text without a place to fill in is returned itself, errors name the subclass, a class
method makes an instance of it, and sets look past the methods of one.
"""

import pytest
import torch

import plumbline


class Text(str):
    pass


class Bytes(bytes):
    pass


class Float(float):
    pass


class Complex(complex):
    pass


class Members(set):
    def __iter__(self):
        raise AssertionError("C looks past it")


CALLS = {
    "format": lambda: Text("abc").format(1),
    "format_map": lambda: Text("abc").format_map({}),
    "percent": lambda: Text("abc").__mod__({"a": 1}),
    "format with a place": lambda: Text("{}bc").format(1),
    "upper": lambda: Text("abc").upper(),
    "concatenation": lambda: Bytes(b"abc").__add__("a"),
    "too many arguments": lambda: Text("abc").format_map(*"xy"),
    "arguments of an unbound call": lambda: Bytes(b"abc").lower(1),
    "format code": lambda: Float(2.5).__format__("a"),
    "class method": lambda: Float(2.5).fromhex("a"),
    "class method refused": lambda: Float(2.5).fromhex(1),
    "member": lambda: (Complex(1 + 2j).real, Complex(1 + 2j).imag),
    "no attribute": lambda: Complex(1j).__getattribute__("a"),
    "cut in place": lambda: {1, 2}.__iand__(Members([2])),
    "cut a subclass in place": lambda: sorted(set.union(set(), *[frozenset(Members([1, 2]) & {2})])),
    "set in a set": lambda: {frozenset([2])}.__contains__(Members([2])),
    "set discarded": lambda: len({frozenset([2])} - {frozenset([2])}) + ({1}.discard({1}) is None),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_c_gives_for_a_subclass(call):
    def program(x):
        try:
            given = call()
        except (TypeError, ValueError, AttributeError) as error:
            given = error.args
        return x + 1, type(given), given

    x = torch.ones(2)
    assert plumbline.compile(program, backend="eager")(x)[1:] == program(x)[1:]
