"""Tensors of classes that programs derive from torch.Tensor, `__torch_function__`, and modes for functions."""

import contextlib

import pytest
import torch
from torch.overrides import TorchFunctionMode

from plumbline.compiler.base.events import Captured, recording
from support.programs import Corpus, check, compiled
from support.sameness import assert_alike

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)
LOG: list[str] = []


class Marked(torch.Tensor):
    """Adds a method, a property and operators of its own."""

    scale = 2.0

    def doubled(self):
        return self * self.scale

    @property
    def rows(self):
        return self.shape[0]

    def __len__(self):
        return 7

    @classmethod
    def of(cls, plain):
        return plain.as_subclass(cls)


class Finer(Marked):
    """Derived from a subclass."""

    def __matmul__(self, other):
        return "no product"


class Logging(torch.Tensor):
    """Notes each function in a list, and goes on as usual."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


class Through(torch.Tensor):
    """Runs functions on plain tensors, so that results are plain."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Swapping(torch.Tensor):
    """Answers some functions itself, declines others."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.sin:
            return "a sine"
        if func in (torch.Tensor.add, torch.add):
            return super().__torch_function__(torch.sub, types, args, kwargs)
        if func is torch.Tensor.shape.__get__:
            return (9, 9)
        return super().__torch_function__(func, types, args, kwargs)


class Flat(torch.Tensor):
    """Takes part in nothing: operations give plain tensors."""

    __torch_function__ = torch._C._disabled_torch_function_impl


class Made(torch.Tensor):
    """Made by a constructor in Python, with an attribute."""

    @staticmethod
    def __new__(cls, data, unit):
        made = torch.Tensor._make_subclass(cls, data)
        made.unit = unit
        return made

    def __init__(self, data, unit):
        self.again = unit


def marked(kind=Marked, **attributes):
    def make():
        value = A.clone().as_subclass(kind)
        for name, content in attributes.items():
            setattr(value, name, content)
        return (value,)

    return make


def shown(*values):
    """Return values with the classes they have."""
    return [(type(value).__name__, value) for value in values]


@program(make=marked())
def methods_of_the_class(x):
    return shown(x.doubled(), x.doubled() + 1, x.rows, len(x), x[0], x[0, 1:], x.T, -x, 2 / x, x == x, x @ x.T)


@program(make=marked(Finer))
def a_class_derived_from_a_subclass(x):
    return shown(x @ x, x + A.as_subclass(Marked), A.as_subclass(Marked) - x, x.as_subclass(Marked) * 2)


@program(make=marked(Finer), changed=marked(Marked))
def the_class_is_guarded(x):
    return isinstance(x, Finer), type(x) is Marked, isinstance(x, torch.Tensor), x + 1


@program(A)
def made_inside(a):
    x = a.as_subclass(Marked)
    x.tag = "t"
    y = Marked.of(a * 2)
    return [*shown(x, y, x + y, x.as_subclass(torch.Tensor), torch.stack([x, y])), x.tag, x is y, x is x]


@program(A)
def rows_and_parts(a):
    x = a.as_subclass(Marked)
    low, high = x.split(1)
    value, where = x.max(1)
    return shown(*list(x), low, high, value, where, *torch.unbind(x), x.size(), x.dim(), x.dtype, x.requires_grad)


@program(make=marked(tag=3), changed=marked(tag=4))
def an_attribute_on_the_tensor(x):
    return x * x.tag, hasattr(x, "other")


@program(make=marked(), changed=marked(other=2))
def an_attribute_that_is_lacking(x):
    return x * getattr(x, "other", 5)


@program(make=marked())
def an_attribute_is_set(x):
    x.tag = x.shape[1]
    return x * x.tag


@program(make=marked())
def written_in_place(x):
    y = x.mul_(2)
    x[0] = 1
    x += 1
    return [*shown(x, y), y is x]


@program(make=lambda: marked()() * 2)
def one_object_twice(x, y):
    x.add_(1)
    return x is y, x + y


@program(make=lambda: (*marked()(), *marked()()), changed=lambda: marked()() * 2)
def two_objects_that_are_written_to(x, y):
    x.add_(1)
    return x is y, x + y


@program(make=lambda: (A.clone().requires_grad_().as_subclass(Marked),), backward=True)
def gradients(x):
    return (x.doubled() * x).sum()


@program(make=lambda: (A.clone().as_subclass(Marked).requires_grad_(),), backward=True)
def gradients_of_a_leaf(x):
    with torch.no_grad():
        known = x.requires_grad, (x * 2).requires_grad
    return (x.doubled() * x).sum(), known


@program(make=marked(Logging), state=lambda: LOG)
def functions_are_logged(x):
    y = torch.sin(x) + 1
    z = torch.nn.functional.relu(y).sum(dim=0).norm()
    return shown(y, z, 2 - x, x.shape, x.T)


@program(make=lambda: (*marked(Logging)(), *marked()()), state=lambda: LOG, graphs=0, breaks=1)
def unrelated_classes_decline(x, y):
    try:
        return x + y
    except TypeError as error:
        return type(error)


@program(make=marked(Through))
def functions_on_plain_tensors(x):
    return shown(torch.sin(x) + 1, x, x.mul(2), x.sum(), x * A, A - x)


@program(make=marked(Swapping))
def functions_are_replaced(x):
    return shown(torch.sin(x), x + 1, torch.add(x, x), x * 2, x.cos()), x.shape


@program(make=marked(Flat))
def a_class_that_takes_part_in_nothing(x):
    return shown(x + 1, torch.sin(x), x, x[0], x.sum(0))


@program(make=marked(Through))
def the_switch_in_a_program(x):
    y = x.as_subclass(Marked)
    with torch._C.DisableTorchFunctionSubclass():
        z = y + 1
    return shown(z, y + 1)


@program(make=marked(), graphs=2, breaks=1)
def a_break_between(x):
    y = x.doubled()
    print("between")
    return shown(y * 2, x)


@program(make=marked(), graphs=3, breaks=2)
def a_break_under_the_switch(x):
    with torch._C.DisableTorchFunctionSubclass():
        y = x + 1
        print("under the switch")
        z = x * 2
    return shown(y, z, x + 1)


class Negating(TorchFunctionMode):
    """Takes cosine for sine, and counts."""

    seen = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen += 1
        return (torch.cos if func is torch.sin else func)(*args, **(kwargs or {}))


class Doubling(TorchFunctionMode):
    """Doubles what comes out where it is a tensor."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if isinstance(result, torch.Tensor) and func is not torch.Tensor.mul else result


@program(A)
def a_mode_inside(a):
    with Negating() as mode:
        b = torch.sin(a) + 1
        shape, rows = b.shape, len(b)
        c = torch.zeros(2) + torch.nn.functional.relu(b).sum() + b[0, 0]
    return b, c, shape, rows, mode.seen, torch.sin(a)


@program(A)
def modes_inside_each_other(a):
    with Doubling():
        b = torch.sin(a)
        with Negating() as inner:
            c = torch.sin(a)
            d = a.as_subclass(Through) + 1
        e = torch.sin(a)
    return b, c, shown(d), e, inner.seen


@program(make=lambda: (A.clone(), Negating()), then=((lambda: (A.clone(), Doubling()), True),))
def a_mode_that_is_given(a, mode):
    with mode:
        b = torch.sin(a)
    return b, getattr(mode, "seen", None)


@program(A, graphs=1, breaks=1, eager=1)
def a_break_under_a_mode(a):
    with Negating() as mode:
        b = torch.sin(a)
        print("under a mode")
        c = torch.sin(b)
    return b, c, mode.seen


class Failing(TorchFunctionMode):
    """Raises at products."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.mul:
            raise KeyError("no products")
        return func(*args, **(kwargs or {}))


@program(A)
def a_mode_that_raises(a):
    try:
        with Failing():
            b = a + 1
            b = b * 2
    except KeyError as error:
        return b, error.args, torch.sin(a)
    return b


class Legacy(torch.Tensor):
    """Made by torch's own constructor."""

    @staticmethod
    def __new__(cls, data):
        return super().__new__(cls, data)


@program(A, breaks=1)
def made_by_the_constructor_of_torch(a):
    return shown(Legacy(a), a + 1)


@program(A)
def made_by_a_constructor(a):
    x = Made(a + 1, "m")
    return shown(x, x + 1), x.unit, x.again


def under(function, *modes):
    """Return what a function gives under modes, and how often the first was asked."""
    with contextlib.ExitStack() as stack:
        for mode in modes:
            stack.enter_context(mode)
        try:
            result = function(A)
        except KeyError as error:
            result = error.args
    return result, getattr(modes[0], "seen", None), torch._C._len_torch_function_stack()


def sines(a):
    return torch.sin(a).shape, torch.sin(a) + len(a), a[0], torch.zeros(2)


def breaking(a):
    b = torch.sin(a)
    print("under a mode")
    return b * 2


def failing(a):
    try:
        return torch.sin(a) * 2
    except KeyError:
        return torch.sin(a)


@pytest.mark.parametrize("function", [sines, breaking, failing])
def test_modes_that_were_entered_outside(function):
    run = compiled(function)
    for modes in ((Negating,), (Doubling,), (Negating, Doubling), (Failing, Negating), (Negating,), ()):
        made = [[kind() for kind in modes] for _ in range(2)]
        if modes:
            assert_alike(under(function, *made[0]), under(run, *made[1]))
    assert_alike(function(A), run(A))


def test_a_mode_outside_costs_no_graph_at_the_second_call():
    run = compiled(sines)
    counts = []
    for _ in range(3):
        with recording() as events:
            under(run, Negating())
        counts.append(sum(isinstance(event, Captured) for event in events))
    assert counts == [1, 0, 0]


@corpus.parametrize()
def test_program(program):
    check(program)
