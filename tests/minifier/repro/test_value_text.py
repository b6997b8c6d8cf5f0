import base64

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.minifier.repro.value_text import INLINE_BYTES, inputs_text


def read_back(names, written):
    scope = {"torch": torch, "base64": base64}
    exec("\n".join(written.lines), scope)
    return [scope[name] for name in names]


def same(one, other):
    facts = lambda t: (t.shape, t.stride(), t.dtype, t.requires_grad)  # noqa: E731 - read beside its use
    assert facts(one) == facts(other)
    bits = lambda t: t.detach().contiguous().flatten().view(torch.uint8).tolist() if t.numel() else []  # noqa: E731 - as above
    assert bits(one) == bits(other)


DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (3, 4), (9, 9)], ids=str)
def test_every_dtype_and_size_comes_back_bit_by_bit(dtype, shape):
    value = (torch.randn(shape) * 3).to(dtype)
    same(read_back(["x"], inputs_text(["x"], (value,)))[0], value)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=80))
def test_any_bits_of_float32_come_back(words):
    value = torch.tensor(words, dtype=torch.int32).view(torch.float32)  # NaN payloads, -0.0, denormals, infinities
    same(read_back(["x"], inputs_text(["x"], (value,)))[0], value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(3, 4).t(),
        lambda: torch.randn(6, 6)[1:4, ::2],
        lambda: torch.randn(3, 1).expand(3, 5),
        lambda: torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last),
    ],
)
def test_strides_come_back(make):
    value = make()
    same(read_back(["x"], inputs_text(["x"], (value,)))[0], value)


def test_shared_memory_stays_shared():
    base = torch.arange(12.0)
    names, values = ["a", "b"], (base[:8].view(2, 4), base[4:])
    a, b = read_back(names, inputs_text(names, values))
    same(a, values[0])
    same(b, values[1])
    b[0] = 99.0
    assert a[1, 0] == 99.0


def test_gradients_wanted_and_plain_numbers_come_back():
    names = ["x", "n", "f"]
    x, n, f = read_back(names, inputs_text(names, (torch.randn(3, requires_grad=True), 7, 2.5)))
    assert x.requires_grad
    assert x.is_leaf
    assert (n, f) == (7, 2.5)


def test_many_values_go_to_a_file():
    value = torch.randn(INLINE_BYTES)
    written = inputs_text(["x"], (value,))
    assert written.blob is not None
    assert written.lines[0] == "x, = load_inputs()"


def test_few_values_are_readable():
    assert inputs_text(["x"], (torch.ones(2, 2),)).lines == ("x = torch.ones((2, 2))",)
    assert inputs_text(["x"], (torch.tensor([1.5, -2.0]),)).lines == (
        "x = torch.tensor([1.5, -2.0], dtype=torch.float32)",
    )
