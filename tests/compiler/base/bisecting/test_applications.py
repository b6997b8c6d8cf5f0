"""Every application of the compiler can be switched off, alone or with others, and the answer stays eager's."""

import random

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

import plumbline
from plumbline.compiler.base.bisecting.applications import Application, Gate, counting, gate_for, numbered
from plumbline.compiler.base.bisecting.switches import KINDS
from plumbline.compiler.base.events import recording
from plumbline.compiler.runtime.cpu_features import cpu_features

pytestmark = pytest.mark.cc


def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = F.hardshrink(F.layer_norm(x @ w, (32,)))
    z = (y.cos().flip(0) + y.exp()).sum(0)
    z = (z.flip(0) * 2).tanh() + y.sum(0)
    return torch.softmax(x * 0.5 + z, 1) + (1 - x) * 2


# Doubles: with floats, other orders of the same sums differ by more than a tolerance that would see a fault.
X = torch.randn(64, 32, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
W = torch.randn(32, 32, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * 0.2


def answer(function: object) -> list[torch.Tensor]:
    w = W.clone().requires_grad_()
    result = function(X, w)  # type: ignore[operator]  # a program
    (result * torch.linspace(0, 1, 32)).sum().backward()
    assert w.grad is not None
    return [result.detach(), w.grad]


def compiled(switches: str) -> tuple[list[torch.Tensor], list[Application]]:
    plumbline.reset()
    with plumbline.config.patch(bisect=switches, strict=True), counting(), recording() as events:
        return answer(plumbline.compile(program)), numbered(events)


@pytest.fixture(scope="module")
def listed() -> list[Application]:
    return compiled("list")[1]


def test_every_kind_that_this_program_has_is_numbered_from_zero(listed: list[Application]) -> None:
    without = {"threads", "stash"} | (
        {"vector"} if cpu_features().vector_bytes < 32 else set()
    )  # too narrow for doubles
    assert {each.kind for each in listed} >= set(KINDS) - without
    for kind in KINDS:
        assert [each.number for each in listed if each.kind == kind] == list(range(sum(a.kind == kind for a in listed)))
    assert all(each.on for each in listed)


def test_an_application_says_what_and_where(listed: list[Application]) -> None:
    lowered = next(each for each in listed if each.rule == "aten.native_layer_norm.default")
    assert lowered.text().startswith(f"lowering {lowered.number}: made a loop of aten.native_layer_norm.default")
    assert "(compiler/lowering/reductions.py:" in lowered.text()
    assert lowered.place.startswith(f"{__file__}:")


@pytest.mark.parametrize("kind", [*KINDS, "all"])
def test_without_a_kind_the_answer_is_eagers(kind: str) -> None:
    found, applications = compiled(kind)
    torch.testing.assert_close(found, answer(program))
    assert not any(each.on for each in applications if kind in (each.kind, "all"))


@pytest.mark.parametrize("seed", range(6))
def test_without_some_of_them_the_answer_is_eagers(seed: int, listed: list[Application]) -> None:
    off = random.Random(seed).sample(listed, 12)
    found, applications = compiled(",".join(f"{each.kind}:#{each.key}" for each in off))
    torch.testing.assert_close(found, answer(program))
    wanted, asked = {(each.kind, each.key) for each in off}, {(each.kind, each.key): each.on for each in applications}
    assert all(on == (each not in wanted) for each, on in asked.items())


def test_numbers_name_what_keys_name(listed: list[Application]) -> None:
    one = next(each for each in listed if each.kind == "fusion" and each.number == 3)
    by_number, by_key = compiled("fusion:3")[1], compiled(f"fusion:#{one.key}")[1]
    off = [[each.key for each in some if not each.on] for some in (by_number, by_key)]
    assert off == [[one.key], [one.key]]


def test_nobody_counts_without_the_option() -> None:
    assert gate_for("", "graph") is None
    assert [each for each in compiled("")[1] if isinstance(each, Application)] == []


def test_a_second_walk_over_a_graph_is_answered_as_the_first() -> None:
    with counting():
        gate = gate_for("fusion:1", "graph")
        assert isinstance(gate, Gate)
        first = [gate.allows("fusion", what) for what in ("a", "a", "b")]
        again = gate.again()
        assert [again.allows("fusion", what) for what in ("a", "a", "b")] == first == [True, False, True]
