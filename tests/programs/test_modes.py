"""Settings that change what torch makes: device blocks, inference blocks, the default dtype; inside and at the end."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as everyone writes it
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)
STATE = {"dtype": torch.float32}


class Holder:
    def __init__(self):
        self.weight = torch.ones(3, requires_grad=True)


def marks(value):
    return value.is_inference(), value.requires_grad


@program(A)
def tensors_made_in_an_inference_block(a):
    with torch.inference_mode():
        b = a * 2
        c = torch.ones(3) + b
    return b, c, marks(b), marks(c), torch.is_inference_mode_enabled()


@program(A)
def inference_as_a_decorator(a):
    @torch.inference_mode()
    def double(z):
        return z * 2

    return double(a), torch.is_inference_mode_enabled()


@program(A)
def normal_block_inside(a):
    with torch.inference_mode():
        with torch.inference_mode(False):
            b = a.clone()
        c = b * 2
    return b, marks(b), marks(c)


@program(make=lambda: (A.clone().requires_grad_(),), backward=True)
def gradients_around_an_inference_block(a):
    with torch.inference_mode():
        k = (a * 2).sum()
        size = k.numel()
    return (a * size).sum(), marks(k)


@program(make=lambda: (Holder(), A.clone()))
def argument_is_first_seen_inside(h, a):
    with torch.inference_mode():
        b = h.weight * a
    return (h.weight * 2).requires_grad, marks(b), b


@program(A)
def argument_is_changed_inside(a):
    with torch.inference_mode():
        a.add_(1)
        row = a[0]
    return a, marks(a), marks(row)


@program(make=lambda: (A.clone().requires_grad_(),), graphs=1, breaks=1)
def inference_tensor_is_refused_by_autograd(a):
    with torch.inference_mode():
        b = a * 2
    return (a * b).sum()


@program(A, graphs=0, eager=1)
def exception_leaves_an_inference_block(a):
    with torch.inference_mode():
        raise ValueError("inside")


@program(A)
def caught_exception_leaves_an_inference_block(a):
    try:
        with torch.inference_mode():
            b = a * 2
            raise ValueError("inside")
    except ValueError:
        return b, torch.is_inference_mode_enabled(), torch.ones(2).is_inference()


@program(A)
def tensors_made_in_a_device_block(a):
    with torch.device("meta"):
        b = torch.ones(2)
        c = torch.zeros_like(a)
        d = torch.ones(2, device="cpu")
        with torch.device("cpu"):
            e = torch.arange(3)
        f = torch.tensor([1.0])
        place = torch.get_default_device()
    return b.device, c.device, d.device, e, f.device, place, torch.ones(1).device, a + 1


@program(make=lambda: (torch.device("meta"), A.clone()), changed=lambda: (torch.device("cpu"), A.clone()))
def device_argument_as_a_block(device, a):
    with device as same:
        b = torch.empty(2)
    return b.device, same is device, a + 1


@program(A)
def module_made_in_a_device_block(a):
    with torch.device("meta"):
        m = nn.Identity()
        b = torch.rand(2, 3)
    return m(a) + 1, b.device


@program(A)
def caught_exception_leaves_a_device_block(a):
    try:
        with torch.device("meta"):
            raise ValueError("inside")
    except ValueError:
        return torch.ones(2), a + 1


def under_a_default():
    """Make the arguments under another default device; the test's fixture puts it back."""
    torch.set_default_device("cpu")
    return (A.clone(),)


@program(A, graphs=2, breaks=1)
def break_in_a_device_block(a):
    with torch.device("meta"):
        b = torch.zeros(3)
        print("x")
        c = torch.ones(3)
    return a + 1, b.device, c.device, torch.ones(1)


@program(make=under_a_default, changed=lambda: (torch.set_default_device(None), (A.clone(),))[1])
def default_device_of_the_process(a):
    b = torch.ones(3)
    with torch.device("meta"):
        c = torch.ones(2)
    return a + b, b.device, c.device, torch.get_default_device()


@program(A, graphs=2, breaks=2)
def break_in_an_inference_block(a):
    with torch.inference_mode():
        b = a * 2
        print(torch.is_inference_mode_enabled())
        c = b + 1
    return c, marks(c), torch.is_inference_mode_enabled()


@program(A, graphs=2, breaks=2)
def break_in_a_block_of_kernels(a):
    q = a[None, None]
    with sdpa_kernel(SDPBackend.MATH):
        b = F.scaled_dot_product_attention(q, q, q)
        print("x")
        c = F.scaled_dot_product_attention(b, q, q)
    return c


@program(A, graphs=2, breaks=1)
def break_under_another_dtype(a):
    torch.set_default_dtype(torch.float64)
    try:
        b = torch.ones(2)
        print("x")
        c = torch.ones(2)
    finally:
        torch.set_default_dtype(torch.float32)
    return b, c, a + 1


@program(A, graphs=2, breaks=2)
def default_device_is_set_for_a_while(a):
    torch.set_default_device("meta")
    b = torch.ones(2) + 1
    torch.set_default_device(None)
    return b.device, torch.ones(2), a + 1


@program(A)
def default_dtype_in_factories(a):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        b, c, d = torch.ones(2), torch.tensor([1.5]), torch.arange(3)
        e = a * 2
    finally:
        torch.set_default_dtype(before)
    return b, c, d, e, torch.ones(1)


def restored():
    torch.set_default_dtype(torch.float32)
    return STATE


@program(A, state=restored)
def default_dtype_stays_changed(a):
    torch.set_default_dtype(torch.float64)
    return torch.ones(2), a + 1


@program(A, graphs=2, breaks=1)
def whole_numbers_divide_under_another_dtype(a):
    torch.set_default_dtype(torch.float64)
    b = torch.arange(3) / 2
    torch.set_default_dtype(torch.float32)
    return a + 1, b


@pytest.fixture(autouse=True)
def default_device_is_put_back():
    yield
    torch.set_default_device(None)


@corpus.parametrize()
def test_program(program):
    check(program)
