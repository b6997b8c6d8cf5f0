"""Programs as data: text, JSON, vocabulary, and what a file may not smuggle in."""

import json
import random
from dataclasses import replace

import pytest
import torch

from plumbline.compiler.base.errors import UserError
from plumbline.fuzz.generated_source import functions_of
from plumbline.fuzz.program_data import from_plain, to_plain
from plumbline.fuzz.transform_programs.generation import programs
from plumbline.fuzz.transform_programs.programs import (
    OperatorStep,
    TransformLevel,
    TransformProgram,
    check_program,
)
from plumbline.fuzz.transform_programs.tensors import LAYOUTS, VALUES, TensorSpec
from plumbline.fuzz.transform_programs.vocabulary import VOCABULARY

NESTED = TransformProgram(
    inputs=(TensorSpec((3, 2)), TensorSpec((2,), values="ties", seed=4)),
    body_inputs=2,
    steps=(OperatorStep("mul", (0, 1)), OperatorStep("sum", (2,), (("dim", 0), ("keepdim", False)))),
    outputs=(3, 2),
    container="tuple",
    nest=(
        TransformLevel("grad", 2, argument=1, access="[0]", scalar=True),
        TransformLevel("vmap", 2, in_dims=(0, None), out_dim=1),
    ),
    compiled=2,
)


def test_text_of_a_nest():
    assert NESTED.source() == (
        "def f0(a0, a1):\n"
        "    t0 = torch.mul(a0, a1)\n"
        "    t1 = torch.sum(t0, dim=0, keepdim=False)\n"
        "    return (t1, t0,)\n\n"
        "def f1(a0, a1):\n"
        "    return torch.func.grad(lambda *a: f0(*a)[0], argnums=1)(a0, a1)\n\n"
        "def f2(a0, a1):\n"
        "    return torch.vmap(f1, in_dims=(0, None), out_dims=1)(a0, a1)\n"
    )
    rows, weights = NESTED.arguments()
    result = functions_of(NESTED.source())["f2"](rows, weights)
    assert torch.equal(result, rows.T)


@pytest.mark.parametrize("transform", ["grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian"])
def test_every_transform_is_written_as_torch_means_it(transform):
    level = TransformLevel(transform, 1, access="['k0']")
    vector = (TensorSpec((3,), seed=2),) if level.takes_vector else ()
    program = TransformProgram((TensorSpec((3,)), *vector), 1, (OperatorStep("sin", (0,)),), (1,), "dict", (level,), 1)
    args = program.arguments()
    result = functions_of(program.source())["f1"](*args)
    x, cos = args[0], torch.cos(args[0])
    v = args[-1]
    expected = {
        "grad": cos,
        "grad_and_value": (cos, x.sin().sum()),
        "vjp": cos * v,
        "jvp": (x.sin(), cos * v),
        "jacrev": torch.diag(cos),
        "jacfwd": torch.diag(cos),
        "hessian": torch.diag(-x.sin()),
    }[transform]
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("seed", range(40))
def test_json_and_back_is_the_same_program(seed: int):
    program = programs(random.Random(seed))
    again = from_plain(TransformProgram, json.loads(json.dumps(to_plain(program))))
    assert again == program
    check_program(again)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(NESTED, steps=(OperatorStep("os.system", (0,)),)),
        replace(NESTED, steps=(OperatorStep("sum", (0,), (("dim", 0),)),)),
        replace(NESTED, nest=(TransformLevel("grad", 2, access="[0].__class__"),)),
        replace(NESTED, nest=(TransformLevel("exec", 2),)),
        replace(NESTED, inputs=(TensorSpec((3,), dtype="float32); print(1"),)),
        replace(NESTED, container="set"),
        replace(NESTED, compiled=3),
    ],
)
def test_a_file_cannot_name_what_is_not_in_the_vocabulary(wrong: TransformProgram):
    with pytest.raises(UserError, match="does not fit this version"):
        check_program(wrong)


@pytest.mark.parametrize("plain", [3, {"inputs": 1}, {"unknown": 1}, {"inputs": [{"shape": ["a"]}]}])
def test_data_of_another_shape_is_refused_in_one_line(plain):
    with pytest.raises(UserError, match="not a saved TransformProgram"):
        from_plain(TransformProgram, plain)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("values", VALUES)
def test_tensors_are_what_they_say(layout, values):
    spec = TensorSpec((3, 4), "bfloat16", layout, values, 1, requires_grad=True)
    tensor = spec.build()
    assert tensor.shape == (3, 4)
    assert tensor.dtype == torch.bfloat16
    assert tensor.is_leaf
    assert tensor.requires_grad
    assert torch.equal(tensor.nan_to_num(), spec.build().nan_to_num())
    strides = {"contiguous": (4, 1), "transposed": (1, 3), "every_second": (8, 2), "offset": (4, 1), "expanded": (0, 1)}
    assert tensor.stride() == strides[layout]


def test_the_vocabulary_is_as_wide_as_promised():
    assert len(VOCABULARY) >= 50
    assert {"fresh"} <= {kind for operator in VOCABULARY.values() for kind in operator.takes}
