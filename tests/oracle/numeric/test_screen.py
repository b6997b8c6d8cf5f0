"""The screen: other orders of summation pass it, planted faults never do."""

import pytest
import torch

from plumbline.oracle.numeric import screen
from plumbline.oracle.numeric.screen import KnownNoise, all_rounding, cancelled, screened, screened_by_norm
from plumbline.oracle.verdict import VerdictKind

ROWS, INNER, COLUMNS = 60, 96, 40
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def product(dtype, seed=0):
    """Eager's product, the same in another order, and in float64."""
    generator = torch.Generator().manual_seed(seed)
    a = torch.randn(ROWS, INNER, generator=generator, dtype=torch.float64).to(dtype)
    b = torch.randn(INNER, COLUMNS, generator=generator, dtype=torch.float64).to(dtype)
    first, second, third = (a[:, k : k + 32].float() @ b[k : k + 32].float() for k in (64, 0, 32))
    return a @ b, (first + second + third).to(dtype), a.double() @ b.double()


def one_element(value):
    value[ROWS // 2, COLUMNS // 2] += 0.05 * value.abs().max()


def zeroed_row(value):
    value[-1] = 0


def stale_tail(value):
    value[:, -5:] = value[:, :5]


def gain(value):
    value *= 1.02


def not_a_number(value):
    value[0, 0] = float("nan")


def infinite(value):
    value[-1, -1] = float("inf")


def coarse_row(value):
    value[3] = value[3].to(torch.float8_e4m3fn).to(value.dtype)


FAULTS = (one_element, zeroed_row, stale_tail, gain, not_a_number, infinite, coarse_row)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(5))
def test_another_order_of_summation_passes(dtype, seed):
    eager, other, exact = product(dtype, seed)
    found = screened(other, eager, exact)
    if torch.equal(other, eager):
        return
    assert found.decision is not None
    assert found.decision.kind in (VerdictKind.NOISE, VerdictKind.BETTER)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [1 << 16, 256])
@pytest.mark.parametrize("later", [False, True])
def test_faults_stay_open(fault, dtype, block, later, monkeypatch):
    monkeypatch.setattr(screen, "_BLOCK", block)
    for of_eager in (True, False):
        eager, other, exact = product(dtype)
        wrong = eager.clone() if of_eager else other
        fault(wrong)
        assert screened(wrong, eager, exact, later=later).decision is None


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("gain", [2**-20, 2**-22, -(2**-22)], ids=str)
def test_a_systematic_offset_of_a_few_roundings_stays_open(gain, later):
    eager, other, exact = product(torch.float32)
    assert screened((other.double() * (1 + gain)).float(), eager, exact, later=later).decision is None


def carried(seed):
    """A weight's gradient of one sample: in other code, in eager, in float64; each row carries what rounded before."""
    generator = torch.Generator().manual_seed(seed)
    sizes, columns, first, second = (
        torch.randn(count, 1, generator=generator, dtype=torch.float64) for count in (ROWS, COLUMNS, ROWS, ROWS)
    )
    sizes[::7] *= 2**-9  # terms of these rows cancel, their roundings do not
    eager, other = (((sizes + off * 2**-24) @ columns.T).float() for off in (first, second))
    return other, eager, sizes @ columns.T


def test_roundings_that_rows_carry_pass_where_another_cotangent_did():
    rounds = [carried(seed) for seed in range(60)]
    passed = [sum(screened(*each, later=later).decision is not None for each in rounds) for later in (False, True)]
    assert 2 * passed[0] < passed[1] > 20


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_faults_beside_roundings_that_rows_carry_stay_open(fault):
    for seed in range(10):
        other, eager, exact = carried(seed)
        fault(other)
        assert screened(other, eager, exact, later=True).decision is None


def test_what_the_order_of_a_sum_explains_passes_where_eager_was_luckier():
    exact = few(torch.float32, 32, 0)[2]
    usual = torch.maximum(exact.abs(), exact.square().mean().sqrt()) * 2**-24
    generator = torch.Generator().manual_seed(1)
    first, second = (torch.randint(2, (32,), generator=generator).double() * 2 - 1 for _ in range(2))

    def passes(error):
        eager = (exact + first * usual).float()
        return screened((exact + error * usual).float(), eager, exact).decision is not None

    assert passes(2.5 * second)
    assert not passes(7 * second)
    assert not passes(torch.full_like(exact, 3.0))


def test_a_difference_where_eager_is_exact_stays_open():
    eager, other, exact = product(torch.float32)
    for value in (eager, other, exact):
        value.clamp_(min=0)
    assert screened(other, eager, exact).decision is not None
    at = (exact == 0).nonzero()[0]
    other[tuple(at)] = 1e-7
    assert screened(other, eager, exact).decision is None


def test_eager_far_from_float64_is_no_unit():
    eager, other, exact = product(torch.float32)
    assert screened(other, eager, exact * 1.001).decision is None
    jumped = eager.clone()
    jumped[5, 5] += 1e-3
    wrong = other.clone()
    wrong[7, 7] += 1e-3
    assert screened(wrong, jumped, exact).decision is None


def test_rows_of_equal_bits_are_left_out_and_change_nothing():
    eager, other, exact = product(torch.float32)
    padding = torch.randn(500, COLUMNS)
    padded = [torch.cat([t, padding.to(t.dtype)]) for t in (other, eager, exact)]
    alone, together = screened(other, eager, exact), screened(*padded)
    assert together.decision == alone.decision
    assert together.error == pytest.approx(alone.error)
    padded[0][-1, 0] += 1
    assert screened(*padded).decision is None


def test_more_dimensions_are_judged_slice_by_slice():
    eager, other, exact = (t.view(5, 12, COLUMNS) for t in product(torch.float32))
    assert screened(other, eager, exact).decision is not None
    wrong = other.clone()
    wrong[:, 3] += 4e-5
    assert screened(wrong, eager, exact).decision is None


def few(dtype, count, seed, scale=1.0):
    """Sums of many terms: eager's, the same in another order, and in float64."""
    generator = torch.Generator().manual_seed(seed)
    terms = (torch.randn(count, 200, generator=generator, dtype=torch.float64) * scale).to(dtype)
    return terms.sum(1), terms.flip(1).cumsum(1)[:, -1], terms.double().sum(1)


@pytest.mark.parametrize("count", [1, 3, 8, 15])
def test_few_elements_pass_where_none_is_further_off_than_eagers_furthest(count):
    passed = differing = 0
    for seed in range(40):
        eager, other, exact = few(torch.float32, count, seed)
        if torch.equal(eager, other) or bool(((eager.double() == exact) & (other != eager)).any()):
            continue
        differing += 1
        passed += screened(other, eager, exact).decision is not None
    assert passed > differing / 2


@pytest.mark.parametrize("fault", [1e-4, -3e-5], ids=str)
@pytest.mark.parametrize("count", [1, 3, 8, 15])
def test_a_fault_in_few_elements_stays_open(count, fault):
    for seed in range(40):
        eager, other, exact = few(torch.float32, count, seed)
        other[count // 2] += fault * float(exact.square().mean().sqrt())  # far above twice what eager may be off
        assert screened(other, eager, exact).decision is None


def test_few_elements_of_half_precision_stay_open():
    for dtype in (torch.bfloat16, torch.float16):
        eager, _, exact = few(dtype, 8, 0)
        assert screened(exact.to(dtype) * 1.01, eager, exact).decision is None


def test_few_elements_that_eager_has_exactly_stay_open():
    eager = torch.tensor([1.0, 2.0, 4.0])
    other = torch.nextafter(eager, torch.full((3,), 9.0))
    assert screened(other, eager, eager.double()).decision is None
    assert screened(other, torch.tensor([1.0, 2.0000005, 4.000001]), eager.double()).decision is None


def test_rows_of_another_size_have_a_measure_of_their_own():
    """A row that is a millionth of the others is far off when it is lost, however little that is beside the others."""
    eager, other, exact = product(torch.float32)
    for value in (eager, other, exact):
        value[7] *= 2**-20
        value[:, 3] *= 2**-20
    assert screened(other, eager, exact).decision is not None
    for lost in (7, (slice(None), 3)):
        wrong = other.clone()
        wrong[lost] = 0
        assert screened(wrong, eager, exact).decision is None


NOISE = KnownNoise(2e-7, 3e-6)


def test_another_cotangent_is_accepted_by_norm():
    eager, other, _ = product(torch.float32)
    assert screened_by_norm(other, eager, NOISE, alike=False).decision is not None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("alike", [False, True])
def test_faults_for_another_cotangent_stay_open(fault, alike):
    eager, other, _ = product(torch.float32)
    fault(other)
    assert screened_by_norm(other, eager, NOISE, alike=alike).decision is None


def test_what_cancels_is_all_rounding_only_as_far_as_noise_reaches():
    generator = torch.Generator().manual_seed(0)
    eager, other = (3e-6 * torch.randn(ROWS, COLUMNS, generator=generator) for _ in range(2))
    assert all_rounding(other, eager, NOISE) is not None
    assert screened_by_norm(other, eager, NOISE, alike=True).decision is not None
    assert screened_by_norm(other, eager, NOISE, alike=False).decision is None
    for fault in (lambda v: v * 10, lambda v: v + 1e-4, lambda v: v * float("nan")):
        assert all_rounding(fault(other), eager, NOISE) is None
        assert all_rounding(other, fault(eager), NOISE) is None
    other[1, 1] = 1e-3
    assert all_rounding(other, eager, NOISE) is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_terms_that_cancel_are_told_from_a_value_that_rounding_made(dtype):
    generator = torch.Generator().manual_seed(0)
    terms = torch.randn(200, 32, generator=generator, dtype=torch.float64).to(dtype)

    def nothing(width):
        """Return sums of a gradient behind a softmax, which are 0."""
        weights, gradient = torch.softmax(terms.to(width), 0), terms.flip(0).to(width)
        return (weights * (gradient - (weights * gradient).sum(0))).sum(0)

    found = screened(1.5 * nothing(dtype), nothing(dtype), nothing(torch.float64))
    assert found.decision is None
    own = KnownNoise(found.noise, found.eager_error)
    assert cancelled(own.relative, dtype)
    assert all_rounding(1.5 * nothing(dtype), nothing(dtype), own) is not None
    for fault in (lambda v: v * 30, lambda v: v + terms[0], lambda v: v + float("inf")):
        assert all_rounding(fault(nothing(dtype)), nothing(dtype), own) is None
    # A branch that rounding has decided: eager's value is of the usual size where float64 has another, or none at all.
    for exact in (terms[1].double(), torch.zeros(32, dtype=torch.float64)):
        assert not cancelled(screened(terms[2], terms[0], exact).noise, dtype)
    assert not cancelled(1.0, torch.float64)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float64])
def test_nothing_cancels_in_numbers_that_are_not_rounded(dtype):
    assert not any(cancelled(noise, dtype) for noise in (0.0, 1.0, 2.0**29))
