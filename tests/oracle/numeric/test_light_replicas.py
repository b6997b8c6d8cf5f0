"""Light replicas: as wide as those of a shadow run, made once for all backwards, and never fooled by a hidden write."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check, cotangents, judge
from plumbline.oracle.noise.lane_evaluation import LanePlan
from plumbline.oracle.noise.light_lane import LightLane
from plumbline.oracle.noise.shadow import ShadowRun
from plumbline.oracle.numeric import light_replicas, references
from plumbline.oracle.numeric.light_replicas import LightReplicas
from support.numeric_programs import HELD_OUT, PROGRAMS, inputs_of


def _rows(run, program, inputs):
    """Return [L, n] of the result and of every gradient under a run."""
    leaves = [t.clone().requires_grad_(t.is_floating_point()) for t in inputs]
    floats = [leaf for leaf in leaves if leaf.requires_grad]
    with run:
        result = program(*leaves)
        gradients = []
        if result.requires_grad:
            gradients = torch.autograd.grad(result, floats, torch.ones_like(result), allow_unused=True)
    assert not run.untrusted
    return [run.lanes_of(each).replicas.flatten(1) for each in (result, *gradients) if each is not None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("program", [*PROGRAMS, *HELD_OUT], ids=lambda program: program.name)
def test_they_are_as_wide_as_those_of_a_shadow_run(program, dtype):
    inputs = inputs_of(program, "normal", dtype)
    whole = _rows(ShadowRun(exact=False, replicas=8, seed=1), program.eager, inputs)
    light = _rows(LightLane(LanePlan(0, 8, 0, 0), seed=2), program.eager, inputs)
    assert len(whole) == len(light)
    for first, second in zip(whole, light, strict=True):
        assert first.shape == second.shape
        if first.dtype != torch.float64:
            continue
        widths = [each.std(0).nan_to_num().square().mean().sqrt() for each in (first, second)]
        middle = first.mean(0).nan_to_num().square().mean().sqrt()
        assert widths[1] <= 3 * widths[0] + 1e-12 * middle
        assert widths[0] <= 3 * widths[1] + 1e-12 * middle


class Follow:
    """A follower of one tensor for each key, which counts its runs."""

    def __init__(self, size=4):
        self.runs = []
        self.tensors = {key: torch.full((size,), 2.0) for key in (None, "random", "one-hot", "ones")}

    def __call__(self, lane, wanted, keep, take):
        self.runs.append((tuple(wanted), lane.plan.replicas))
        with lane:
            found = {key: tensor * 1.1 for key, tensor in self.tensors.items()}
        keep(None, {"x": found[None], "y": found[None] * 1})
        for key in wanted:
            if take is not None:
                take("x", found[key])
                take("y", found[key])
            else:
                keep(key, {"x": found[key], "y": found[key]})


def test_a_run_gives_the_replicas_of_one_backward_then_of_all_others_and_one_more_the_rest_of_them():
    follow = Follow()
    replicas = LightReplicas(follow, ("random", "one-hot", "ones"), large=False, number=8, seed=0)
    first = replicas.few("x", "random")
    assert first.shape == (2, 4)
    assert replicas.few("y", "one-hot").shape == (2, 4)
    assert replicas.few("y", "ones").shape == (2, 4)
    assert follow.runs == [(("random",), 2), (("one-hot", "ones"), 2)]
    whole = replicas.all("x", "random")
    assert whole.shape == (8, 4)
    assert torch.equal(whole[:2], first)
    assert len(whole.unique(dim=0)) == 8
    assert replicas.all("y", "random").shape == (8, 4)
    assert follow.runs[2:] == [(("random",), 6)]
    assert replicas.few("z", "random") is None
    assert len(follow.runs) == 3


def test_in_a_large_call_two_lanes_run_at_once_and_little_is_kept(monkeypatch):
    monkeypatch.setattr(light_replicas, "ROOM", 0)
    follow = Follow()
    replicas = LightReplicas(follow, (), large=True, number=8, seed=0)
    assert replicas.few("x", "random").shape == (2, 4)
    assert replicas.all("x", "random").shape == (8, 4)
    assert follow.runs == [(("random",), 2)] * 4
    assert replicas.few("y", "random").shape == (2, 4)
    assert follow.runs == [(("random",), 2)] * 5


def test_runs_for_tensors_that_were_not_kept_are_few(monkeypatch):
    monkeypatch.setattr(light_replicas, "ROOM", 0)
    follow = Follow()
    replicas = LightReplicas(follow, (), large=True, number=8, seed=0)
    made = [replicas.few("xy"[number % 2], "random") for number in range(20)]
    assert len(follow.runs) == light_replicas.MOST_RUNS
    assert made.count(None) == (20 - light_replicas.MOST_RUNS) // 2  # what the last run kept is still there


@pytest.mark.parametrize("large", [False, True])
def test_a_write_that_no_operator_makes_never_lets_a_fault_pass(monkeypatch, large):
    monkeypatch.setattr(judge, "LARGE_CALL", 0 if large else 1 << 60)
    monkeypatch.setattr(cotangents, "LARGEST_FOR_DOUBLE", 0)
    seen = []
    by_light = references.References._by_light_replicas

    def noted(self, *tensor):
        decision = by_light(self, *tensor)
        seen.append(decision)
        return decision

    monkeypatch.setattr(references.References, "_by_light_replicas", noted)

    def program(x):
        y = x * 1.7
        y.numpy()[::2] *= 3.0
        return y.exp().sum(-1, keepdim=True) * y

    def otherwise(x):
        return program(x) * (1 + 2e-6)

    verdict = check(program, (torch.rand(64, 32),), compiled=otherwise)
    assert verdict.kind is VerdictKind.WRONG
    assert seen == [None] * len(seen)
