"""isinstance believes the `__class__` that an object tells, which may be code of its own."""

import collections.abc

import torch

import plumbline


class Real:
    pass


class Pretender:
    @property
    def __class__(self):
        return Real


class Asked:
    def __getattribute__(self, name):
        return dict if name == "__class__" else object.__getattribute__(self, name)


class Proxy:
    def __init__(self, inner):
        self.inner = inner

    @property
    def __class__(self):
        return type(self.inner)


PRETENDER, ASKED = Pretender(), Asked()


def test_isinstance_asks_the_object():
    def program(x):
        told = isinstance(PRETENDER, Real), isinstance(PRETENDER, Pretender), type(PRETENDER) is Real
        return x, told, isinstance(ASKED, dict), isinstance(ASKED, Asked), isinstance(ASKED, collections.abc.Mapping)

    x = torch.ones(2)
    assert plumbline.compile(program, backend="eager", fullgraph=True)(x)[1:] == program(x)[1:]


def test_a_local_class_is_told():
    class Inner:
        pass

    class Outer:
        @property
        def __class__(self):
            return Inner

    thing = Outer()

    def program(x):
        return x, isinstance(thing, Inner), isinstance(thing, Outer), thing.__class__ is Inner, type(thing) is Outer

    x = torch.ones(2)
    assert plumbline.compile(program, backend="eager", fullgraph=True)(x)[1:] == program(x)[1:]


def test_a_proxy_tells_what_it_holds_now():
    proxy = Proxy([1])

    def program(x):
        return x + 1 if isinstance(proxy, list) else x - 1 if isinstance(proxy, (int, str)) else x * 7

    compiled = plumbline.compile(program, backend="eager", fullgraph=True)
    for inner in ([1], "text", 3, 2.0):
        proxy.inner = inner
        assert torch.equal(compiled(torch.ones(2)), program(torch.ones(2)))
