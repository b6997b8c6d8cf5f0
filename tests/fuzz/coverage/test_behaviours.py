"""What examples reach: operators by type and stage, pairs of opcodes, kinds of guards, reasons of breaks."""

import pytest
import torch

import plumbline
from plumbline.fuzz.coverage.behaviours import guard_kind, opcode_pairs, operators_run, reached_behaviours


def test_operators_are_told_by_type_and_stage():
    def program(x):
        y = x.sin() * 2
        print(end="")
        return y.cumsum(0)

    x = torch.ones(3, 3, dtype=torch.float64, requires_grad=True)
    with reached_behaviours() as found:
        plumbline.compile(program)(x).sum().backward()
    assert {
        "operators: sin f64 capture",
        "operators: aten.sin.default f64 forward",
        "operators: aten.cos.default f64 backward",
        "operators: sin loops",
        "guards: name is a tensor like",
        "guards: is_grad_enabled() is",
    } <= found
    assert any(one.startswith("fallbacks: aten.cumsum") for one in found) or "operators: cumsum f64 capture" in found
    assert not {one for one in found if "sin" in one and "f32" in one}


def test_breaks_and_recompiles_are_told_by_kind():
    def program(x, word):
        if x.sum() > 0:
            return x * len(word)
        return x

    compiled = plumbline.compile(program)
    with reached_behaviours() as found:
        compiled(torch.ones(2), "a")
        compiled(torch.ones(2), "bb")
    assert "breaks: data-dependent-branch" in found
    assert any(one.startswith("recompiles: name equals") for one in found), found


def test_what_runs_outside_the_block_is_not_told():
    with reached_behaviours() as found:
        pass
    plumbline.compile(torch.sin)(torch.ones(2))
    assert not found


def test_operators_of_eager_are_told_by_the_type_of_their_first_tensor():
    def run():
        torch.ones(2, dtype=torch.int32).add(1).abs()
        raise ValueError

    assert {"operators: aten.add.Tensor int32 eager", "operators: aten.abs.default int32 eager"} <= operators_run(run)


def test_pairs_of_opcodes_come_from_every_function_of_a_text():
    text = "def f(x):\n    return [x for _ in x]\n"
    assert opcode_pairs(text) < opcode_pairs(text + "class A:\n    def g(self):\n        self.y = 1\n")
    assert opcode_pairs("def f(:") == frozenset()


@pytest.mark.parametrize(
    ("guard", "kind"),
    [
        ("thing.config['unused'] equals 0", "name.attribute[item] equals"),
        ("items0[17] has type list", "name[item] has type"),
        ("x is a tensor like Tensor float32[2, 3] on cpu", "name is a tensor like"),
        ("get_default_dtype() is torch.float32", "get_default_dtype() is"),
        ("globals(fuzz_program) lacks key 'str'", "name(fuzz_program) lacks key"),
    ],
)
def test_kinds_of_guards_name_nothing_of_the_program(guard, kind):
    assert guard_kind(guard) == kind
