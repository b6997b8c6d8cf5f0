import math
import operator
import re
import struct

import pytest
import torch

from plumbline.compiler.autograd.call_signature import CallSignature, OutputFact, OutputKind, WriteFact
from plumbline.compiler.autograd.view_writes import ViewStep
from plumbline.compiler.base.symbol_facts import SizeText
from plumbline.compiler.stored.plain_data import (
    NotPlain,
    plain_bytes,
    plain_of_bytes,
    plain_text,
    plain_value,
    value_of_plain,
)

aten = torch.ops.aten
STEP = ViewStep(aten.select.int, (0, 1), (("x", None),), None, grad_enabled=True)
SIGNATURE = CallSignature(
    (0, 2),
    (OutputFact(OutputKind.RETURNED, 0, (STEP,), requires_grad=True), OutputFact(OutputKind.CONSTANT, constant=3)),
    (WriteFact(1, tracked=True, versions=0),),
    1,
    (True, False),
    frozenset({0, 5}),
)
VALUES = [
    *(None, True, 1, 1.0, -0.0, "text", b"bytes", 1 + 2j, ...),
    *((1, (2.5, [3])), [], {"a": 1, 2: (3,)}, slice(1, None, 2), frozenset({3, 1}), torch.Size([2, 3])),
    *(torch.float16, torch.strided, torch.channels_last, torch.device("cpu"), torch.device("cuda", 1)),
    *(aten.add.Tensor, aten.relu.default, operator.getitem, math.sqrt, torch.addmm, torch.nn.functional.layer_norm),
    *(SizeText("s0 + 1"), OutputKind.SAME, STEP, SIGNATURE),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)))
def test_a_value_comes_back_from_its_bytes(value):
    again = value_of_plain(plain_of_bytes(plain_bytes(plain_value(value))))
    assert again == value
    assert type(again) is type(value)
    assert plain_text(plain_value(again)) == plain_text(plain_value(value))


@pytest.mark.parametrize("bits", [0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000000, 0x8000000000000000])
def test_floats_come_back_to_the_bit(bits):
    (value,) = struct.unpack("<d", struct.pack("<Q", bits))
    again = value_of_plain(plain_of_bytes(plain_bytes(plain_value([value]))))[0]
    assert struct.pack("<d", again) == struct.pack("<d", value)


def test_no_two_values_share_a_text():
    values = [
        *(
            0,
            0.0,
            -0.0,
            False,
            None,
            "0",
            b"0",
            (0,),
            [0],
            {0: 0},
            ((0,),),
            ("tuple", 0),
            math.nan,
            -math.nan,
            math.inf,
        ),
        *(0j, -0j, complex(-0.0, 0), (), [], {}, "", "None", slice(None), ..., torch.float32, "float32", ("torch",)),
        *(aten.add.Tensor, aten.add.Scalar, aten.add_.Tensor, operator.add, torch.add, torch.Size([0]), frozenset({0})),
    ]
    texts = [plain_text(plain_value(value)) for value in values]
    assert len(set(texts)) == len(texts)


def mine(x):
    return x


class Number(int):
    pass


@pytest.mark.parametrize(
    "value",
    [mine, lambda x: x, Number(3), object(), torch.zeros(1), torch.Generator(), SIGNATURE.__class__, {1}, [mine]],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_plain_form_is_refused(value):
    with pytest.raises(NotPlain):
        plain_value(value)


def test_a_function_in_the_place_of_torchs_is_refused(monkeypatch):
    plain_value(torch.nn.functional.gelu)
    plain_value(torch.nn.functional.layer_norm)
    mine.__module__, before = "torch.nn.functional", mine.__module__
    monkeypatch.setattr(torch.nn.functional, "mine", mine, raising=False)
    with pytest.raises(NotPlain, match="neither torch nor plumbline"):
        plain_value(mine)
    mine.__module__ = before


def test_an_operator_of_others_is_refused():
    with torch.library._scoped_library("test_plain_data", "DEF") as library:
        library.define("own(Tensor x) -> Tensor")
        with pytest.raises(NotPlain, match="which neither torch nor plumbline defines"):
            plain_value(torch.ops.test_plain_data.own.default)


def test_bytes_that_hold_more_than_plain_data_run_nothing():
    import pickle

    for content in (pickle.dumps(operator.getitem), pickle.dumps(torch.Size([1])), b"", b"\x80\x05", b"text"):
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever pickle finds wrong
            plain_of_bytes(content)
