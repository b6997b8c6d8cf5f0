import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.oracle import check
from plumbline.oracle.noise.lanes import Lanes
from plumbline.oracle.noise.shadow import ShadowRun
from plumbline.oracle.numeric.bits import zero_sign_differences
from plumbline.oracle.numeric.value_decision import Need
from plumbline.oracle.numeric.value_judgement import judge_values
from plumbline.oracle.verdict import VerdictKind

STAGES = ({}, {"replicas": 8}, {"replicas": 8, "rounded": 4})


def judge(program, candidate, *inputs):
    actual = candidate(*[t.clone() for t in inputs])
    eager = program(*[t.clone() for t in inputs])
    kind, numbers, sentence = judge_values(actual, eager, None)
    if kind is VerdictKind.EQUAL:
        return kind, numbers, sentence
    for stage in STAGES:
        with ShadowRun(**stage) as run:
            result = program(*[t.clone() for t in inputs])
        assert not run.untrusted
        kind, numbers, sentence = judge_values(actual, eager, run.lanes_of(result))
        if not isinstance(kind, Need):
            return kind, numbers, sentence
    raise AssertionError("undecided with all lanes")


def noise_lanes(exact, u=2.0**-24, seed=0, count=8):
    generator = torch.Generator().manual_seed(seed)
    xi = torch.rand((count, *exact.shape), generator=generator, dtype=torch.float64) * 2 - 1
    return Lanes(exact=exact, replicas=exact * (1 + 4 * u * xi))


def close_pair(shape, seed, u=2.0**-24):
    """Return exact values and two float32 tensors that are a few roundings off them."""
    generator = torch.Generator().manual_seed(seed)
    exact = torch.randn(shape, generator=generator, dtype=torch.float64)

    def off():
        return (exact * (1 + 3 * u * (torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1))).float()

    return exact, off(), off()


# ---------------------------------------------------------------- end to end cases


def test_fp32_intermediates_of_an_fp16_comparison_are_wrong():
    x = torch.arange(512).half() / 64
    program = lambda v: ((v + 0.1) - 0.1) >= v  # noqa: E731 - one line reads as the formula
    assert judge(program, lambda v: ((v.float() + 0.1) - 0.1) >= v.float(), x)[0] is VerdictKind.WRONG
    assert judge(program, program, x)[0] is VerdictKind.EQUAL
    assert judge(program, lambda v: torch.ge((v + 0.1).sub(0.1), v), x)[0] is VerdictKind.EQUAL


def test_an_unrounded_scalar_in_fp16_fmod_is_wrong():
    x = torch.tensor([300, 2.5, -7, 100]).half()
    rounded = float(torch.tensor(0.3).half())
    assert judge(lambda v: torch.fmod(v, 0.3), lambda v: torch.fmod(v.float(), 0.3).half(), x)[0] is VerdictKind.WRONG
    assert (
        judge(lambda v: torch.fmod(v, 0.3), lambda v: torch.fmod(v.float(), rounded).half(), x)[0] is VerdictKind.EQUAL
    )


def test_floor_division_by_the_float32_tenth_is_nine():
    kind, _, sentence = judge(
        torch.floor_divide, lambda a, b: (a / b).floor(), torch.tensor([1.0]), torch.tensor([0.1])
    )
    assert kind is VerdictKind.WRONG
    assert "1 off" in sentence


def test_floor_of_a_computed_value_is_decided_by_rounding():
    torch.manual_seed(0)
    x = torch.rand(20000, 33)
    for finish in (lambda v: v.floor(), lambda v: v.floor().long()):
        program = lambda v, f=finish: f(v.sum(-1) * 100)  # noqa: E731 - one line reads as the formula
        assert judge(program, lambda v, f=finish: f(v.flip(-1).sum(-1) * 100), x)[0] is VerdictKind.NOISE

        def one_off(v, p=program):
            result = p(v)
            result[7] += 1
            return result

        assert judge(program, one_off, x)[0] is VerdictKind.WRONG


def test_another_accurate_instance_norm_passes():
    torch.manual_seed(0)
    x = torch.randn(1, 3, 256, 256) + 10

    def two_pass(v):
        mean = v.mean((2, 3), keepdim=True)
        return (v - mean) * torch.rsqrt((v - mean).square().mean((2, 3), keepdim=True) + 1e-5)

    assert judge(torch.nn.functional.instance_norm, two_pass, x)[0] in (VerdictKind.NOISE, VerdictKind.BETTER)
    assert judge(torch.nn.functional.instance_norm, lambda v: two_pass(v) * 1.0001, x)[0] is VerdictKind.WRONG


@pytest.mark.slow
def test_another_accurate_instance_norm_passes_at_full_size():
    torch.manual_seed(0)
    x = torch.randn(1, 3, 1024, 1024) + 10

    def in_double(v):
        variance, mean = torch.var_mean(v.double(), (2, 3), correction=0, keepdim=True)
        return ((v.double() - mean) / (variance + 1e-5).sqrt()).float()

    def folded(v):
        variance, mean = torch.var_mean(v, (2, 3), correction=0, keepdim=True)
        scale = torch.rsqrt(variance + 1e-5)
        return v * scale - mean * scale

    for variant in (in_double, folded):
        assert judge(torch.nn.functional.instance_norm, variant, x)[0] in (VerdictKind.NOISE, VerdictKind.BETTER)


# ---------------------------------------------------------------- the cheap stages


def test_without_lanes_bits_decide_and_the_rest_has_no_reference():
    x = torch.randn(50)
    assert judge_values(x, x.clone(), None)[0] is VerdictKind.EQUAL
    assert judge_values(x * (1 + 2e-7), x, None)[0] is VerdictKind.NO_REFERENCE
    assert judge_values(x * 2, x, None)[0] is VerdictKind.WRONG
    assert judge_values(torch.tensor([1, 2]), torch.tensor([1, 3]), None)[0] is VerdictKind.WRONG


def test_exact_lane_alone_settles_correct_rounding():
    exact = torch.randn(50, dtype=torch.float64)
    eager = exact.float() * (1 + 3e-7)
    assert judge_values(exact.float(), eager, Lanes(exact=exact))[0] is VerdictKind.BETTER
    assert judge_values(exact.float() * (1 + 1e-5), eager, Lanes(exact=exact))[0] is Need.REPLICAS


def test_signs_of_zero_are_counted_and_do_not_decide():
    plus, minus = torch.tensor([0.0, 1.0]), torch.tensor([-0.0, 1.0])
    kind, _, sentence = judge_values(minus, plus, None)
    assert kind is VerdictKind.NOISE
    assert "sign of zero at 1 position" in sentence
    assert zero_sign_differences(minus, plus) == 1
    assert zero_sign_differences(torch.tensor([complex(0, -0.0)]), torch.tensor([0j])) == 1


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), ()])
def test_empty_and_scalar_tensors_have_a_verdict(shape):
    exact, actual, eager = close_pair(shape, 0)
    kind, _, _ = judge_values(actual, eager, noise_lanes(exact))
    assert kind in (VerdictKind.EQUAL, VerdictKind.NOISE, VerdictKind.BETTER)


# ---------------------------------------------------------------- properties of the statistics


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), shape=st.sampled_from([(300,), (20, 30), (4, 5, 6), (1, 7)]))
def test_a_few_roundings_are_noise_and_a_gross_element_is_wrong(seed, shape):
    exact, actual, eager = close_pair(shape, seed)
    lanes = noise_lanes(exact, seed=seed)
    assert judge_values(actual, eager, lanes)[0] in (VerdictKind.NOISE, VerdictKind.BETTER, VerdictKind.EQUAL)
    at = seed % actual.numel()
    actual.view(-1)[at] += 1e-3
    kind, numbers, _ = judge_values(actual, eager, lanes)
    assert kind is Need.ROUNDED  # asks whether it is a jump
    full = Lanes(
        exact, lanes.replicas, rounded=eager.double().expand(4, *shape), wide=noise_lanes(exact, 2.0**-21).replicas
    )
    kind, numbers, _ = judge_values(actual, eager, full)
    assert kind is VerdictKind.WRONG
    assert numbers.worst_index == tuple(int(i) for i in torch.unravel_index(torch.tensor(at), shape))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), power=st.integers(-40, 40))
def test_scaling_by_powers_of_two_changes_nothing(seed, power):
    exact, actual, eager = close_pair((20, 30), seed)
    lanes = noise_lanes(exact, seed=seed)
    factor = 2.0**power
    scaled = Lanes(exact * factor, lanes.replicas * factor)
    one = judge_values(actual, eager, lanes)
    two = judge_values(actual * factor, eager * factor, scaled)
    assert one[0] is two[0]
    if one[1] is not None:
        assert math.isclose(one[1].margin, two[1].margin, rel_tol=1e-6)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_permutation_of_positions_keeps_the_element_statistic(seed):
    exact, actual, eager = close_pair((400,), seed)
    lanes = noise_lanes(exact, seed=seed)
    order = torch.randperm(400, generator=torch.Generator().manual_seed(seed))
    one = judge_values(actual, eager, lanes)[1]
    two = judge_values(actual[order], eager[order], Lanes(exact[order], lanes.replicas[:, order]))[1]
    assert math.isclose(one.t_element, two.t_element, rel_tol=1e-9)
    assert math.isclose(one.t_rms, two.t_rms, rel_tol=1e-9)


def full(lanes, eager):
    return Lanes(
        lanes.exact, lanes.replicas, eager.double().expand(4, *eager.shape), noise_lanes(lanes.exact, 2.0**-21).replicas
    )


def test_one_wrong_element_in_a_million_is_seen():
    exact, actual, eager = close_pair((1000, 1000), 1)
    lanes = full(noise_lanes(exact), eager)
    assert judge_values(actual, eager, lanes)[0] is VerdictKind.NOISE
    actual[123, 456] += 1e-5
    kind, numbers, _ = judge_values(actual, eager, lanes)
    assert kind is VerdictKind.WRONG
    assert numbers.worst_index == (123, 456)


def test_a_systematic_row_far_below_the_element_bound_is_seen():
    exact, actual, eager = close_pair((64, 2000), 2)
    lanes = full(noise_lanes(exact), eager)
    assert judge_values(actual, eager, lanes)[0] is VerdictKind.NOISE
    actual[5] = (actual[5].double() * (1 + 8 * 2.0**-24)).float()
    kind, numbers, sentence = judge_values(actual, eager, lanes)
    assert kind is VerdictKind.WRONG
    assert numbers.t_bias > 1 > numbers.t_element
    assert "mean over a slice" in sentence


def test_a_permuted_row_is_seen():
    exact, actual, eager = close_pair((16, 64), 3)
    lanes = full(noise_lanes(exact), eager)
    actual[3] = actual[3].roll(1)
    assert judge_values(actual, eager, lanes)[0] is VerdictKind.WRONG


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_a_special_value_must_stand_where_eager_has_it(special):
    exact, actual, eager = close_pair((50,), 4)
    exact, actual, eager = exact.clone(), actual.clone(), eager.clone()
    exact[3] = eager[3] = actual[3] = special
    lanes = noise_lanes(exact)
    lanes.replicas[:, 3] = special
    assert judge_values(actual, eager, lanes)[0] in (VerdictKind.NOISE, VerdictKind.BETTER)
    moved = actual.clone()
    moved[3], moved[4] = actual[4], special
    assert judge_values(moved, eager, full(lanes, eager))[0] is VerdictKind.WRONG
    lost = actual.clone()
    lost[3] = 1.0
    assert judge_values(lost, eager, full(lanes, eager))[0] is VerdictKind.WRONG
    negated = actual.clone()
    negated[3] = -special
    assert judge_values(negated, eager, full(lanes, eager))[0] is (
        VerdictKind.WRONG if math.isinf(special) else VerdictKind.NOISE
    )


def test_a_finite_value_is_right_where_only_eager_overflowed():
    x = torch.full((20,), 300.0).half()
    program = lambda v: (v * v) / v  # noqa: E731 - one line reads as the formula
    assert torch.isinf(program(x)).all()
    assert judge(program, lambda v: v.clone(), x)[0] in (VerdictKind.NOISE, VerdictKind.BETTER)
    assert judge(program, lambda v: v * 1.5, x)[0] is VerdictKind.WRONG


def test_complex_values_are_judged_as_pairs():
    torch.manual_seed(0)
    a, b = torch.randn(30, 8, dtype=torch.complex64), torch.randn(8, 30, dtype=torch.complex64)
    assert judge(torch.matmul, lambda x, y: x.flip(1) @ y.flip(0), a, b)[0] in (VerdictKind.NOISE, VerdictKind.BETTER)
    assert judge(torch.matmul, lambda x, y: (x @ y).conj().resolve_conj(), a, b)[0] is VerdictKind.WRONG


def test_exact_results_must_be_exact():
    x = torch.arange(64.0).view(8, 8)
    assert judge(lambda v: v + 1, lambda v: (v + 1) * (1 + 1.3e-7), x)[0] is VerdictKind.WRONG
    assert judge(lambda v: v.sum(0), lambda v: v.sum(0) * (1 + 1.3e-7), x)[0] is VerdictKind.WRONG


def test_integers_are_exact_however_large():
    x = torch.tensor([100000, 5])
    assert judge(lambda v: v + 1, lambda v: v + 10, x)[0] is VerdictKind.WRONG


def test_argmax_ties_made_by_rounding_are_noise_and_others_wrong():
    torch.manual_seed(0)
    x = torch.rand(40, 16)
    x[3] = 0.5
    program = lambda v: torch.softmax(v * 3, -1).argmax(-1)  # noqa: E731 - one line reads as the formula

    def other(v, row, value):
        result = program(v)
        result[row] = value
        return result

    assert judge(program, lambda v: other(v, 3, 9), x)[0] is VerdictKind.NOISE
    assert judge(program, lambda v: other(v, 4, int(x[4].argmin())), x)[0] is VerdictKind.WRONG


def test_the_same_question_has_the_same_answer():
    exact, actual, eager = close_pair((30, 30), 9)
    lanes = noise_lanes(exact)
    assert judge_values(actual, eager, lanes) == judge_values(actual, eager, lanes)


@pytest.mark.parametrize("shape", [(1,), (4, 4), (1000,), (64, 100)])
@pytest.mark.parametrize("ulps", [1, 2])
def test_equal_elements_are_one_rounding_not_many(shape, ulps):
    x = torch.full(shape, 1.3)

    def off(x):
        y = x.erf()
        for _ in range(ulps):
            y = torch.nextafter(y, torch.full_like(y, 9.0))
        return y

    verdict = check(torch.erf, (x,), compiled=off)
    assert not verdict.failed, str(verdict)


def test_equal_elements_far_off_are_still_wrong():
    assert check(torch.erf, (torch.full((4, 4), 1.3),), compiled=lambda x: x.erf() * (1 + 2e-6)).failed
