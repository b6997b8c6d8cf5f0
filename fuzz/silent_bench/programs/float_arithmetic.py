"""Floating-point operations: division, remainders, NaN, infinities, signed zeros, the largest and smallest numbers."""

import torch


def test_floor_division_of_floats():
    """1.0 // 0.1 is 9 in floating point; compiled code rounds the quotient first."""
    divide = torch.compile(lambda a, c: a // c)
    divide(torch.tensor([1.0, 0.5, 6.0]), torch.tensor([0.1, 0.1, 0.2]))


def test_copysign_with_negative_zero_scalar():
    """copysign(x, -0.0) makes every value negative; the sign of the scalar zero counts."""
    torch.manual_seed(0)
    negate = torch.compile(lambda x: torch.ops.aten.copysign(x, -0.0))
    negate(torch.randn(16))


def test_special_functions_on_strided_slice():
    """A strided column feeds softplus, gammaln, erf and xlogy, which are then stacked."""

    def features(logits, y, alpha, beta):
        x = logits[..., 16]
        p = torch.nn.functional.softplus(x) + 1e-4
        r = torch.nn.functional.softplus(y) + 1e-4
        parts = [
            torch.special.gammaln(p + alpha.view(1, -1)),
            torch.special.erf(x * beta.view(1, -1)),
            torch.special.xlogy(p, r),
        ]
        return torch.stack(parts, -1)

    torch.manual_seed(0)
    torch.compile(features)(torch.randn(4, 8, 32), torch.randn(4, 8), torch.rand(8), torch.rand(8))


def test_not_a_number_times_zero():
    """NaN * 0 is NaN: an unused term of a loss."""
    loss = torch.compile(lambda loss, unused: loss + unused.sum() * 0)
    loss(torch.tensor(1.0), torch.tensor([float("nan"), 1.0]))


def test_infinity_minus_itself():
    """x - x of inf is NaN."""
    torch.compile(lambda x: x - x)(torch.tensor([1.0, float("inf")]))


def test_zero_plus_minus_zero():
    """-0.0 + 0 is 0.0."""
    torch.compile(lambda x: 1 / (x + 0))(torch.tensor([-0.0, 2.0]))


def test_shrinking_of_nan():
    """softshrink(NaN) is NaN."""
    torch.compile(lambda x: torch.nn.functional.softshrink(x))(torch.tensor([float("nan"), 2.0]))


def test_shrinking_hard_of_nan():
    """hardshrink(NaN) is NaN."""
    torch.compile(lambda x: torch.nn.functional.hardshrink(x))(torch.tensor([float("nan"), 2.0, 0.1]))


def test_activations_of_nan():
    """NaN goes through relu, relu6, hardtanh, leaky_relu and clamp."""
    functional = torch.nn.functional

    def activate(x):
        return functional.relu(x), functional.relu6(x), functional.hardtanh(x), functional.leaky_relu(x), x.clamp(0, 1)

    torch.compile(activate)(torch.tensor([float("nan"), -1.0, 8.0]))


def test_threshold_of_nan():
    """threshold keeps NaN."""
    torch.compile(lambda x: torch.nn.functional.threshold(x, 0.5, -1.0))(torch.tensor([float("nan"), 0.1]))


def test_maximum_with_nan():
    """maximum and minimum carry NaN, fmax and fmin drop it."""

    def extremes(a, b):
        return torch.maximum(a, b), torch.minimum(a, b), torch.fmax(a, b), torch.fmin(a, b)

    nan = float("nan")
    torch.compile(extremes)(torch.tensor([nan, 1.0, nan]), torch.tensor([2.0, nan, nan]))


def test_sign_of_special_values():
    """sign and sgn of NaN, zeros and infinities."""
    inf, nan = float("inf"), float("nan")
    torch.compile(lambda x: (torch.sign(x), torch.sgn(x), torch.signbit(x)))(torch.tensor([nan, -0.0, 0.0, -inf]))


def test_remainder_of_large_quotients():
    """remainder is exact however large the quotient is."""
    torch.compile(lambda a, b: torch.remainder(a, b))(
        torch.tensor([1e10, 16777217.0, -5e9]), torch.tensor([3.0, 0.1, 7.0])
    )


def test_remainder_by_a_fraction():
    """x % 0.1 of numbers that are near multiples."""
    torch.compile(lambda x: x % 0.1)(torch.tensor([1.0, 0.3, 0.7, 123.4, -0.2]))


def test_remainder_by_infinity():
    """x % inf is x, and the sign follows the divisor."""
    inf = float("inf")
    torch.compile(lambda a, b: (a % b, torch.fmod(a, b)))(torch.tensor([5.0, -5.0]), torch.tensor([inf, inf]))


def test_powers_of_special_values():
    """0 ** 0, inf ** 0, (-8) ** (1/3), 1 ** NaN."""
    inf, nan = float("inf"), float("nan")
    torch.compile(lambda a, b: a**b)(torch.tensor([0.0, inf, -8.0, 1.0]), torch.tensor([0.0, 0.0, 1 / 3, nan]))


def test_inverse_hyperbolic_of_large_numbers():
    """asinh and acosh of 1e300 are finite, asinh of the smallest number is itself."""
    torch.compile(lambda x: (torch.asinh(x), torch.acosh(x)))(torch.tensor([1e300, 5e-324, 2.0], dtype=torch.float64))


def test_inverse_hyperbolic_in_a_chain():
    """acosh of 3e38 after another operation, on a vector of sixteen."""
    torch.compile(lambda x: torch.acosh(x.abs()) + 1)(torch.full((16,), -3e38))


def test_logarithm_of_a_tiny_sum():
    """log1p(1e-10) and expm1(1e-10) keep their digits."""
    torch.compile(lambda x: (torch.log1p(x), torch.expm1(x)))(torch.tensor([1e-10, -1e-10, 1e-20]))


def test_sigmoid_of_extremes():
    """sigmoid, logsigmoid and softplus far out."""
    functional = torch.nn.functional
    torch.compile(lambda x: (x.sigmoid(), functional.logsigmoid(x), functional.softplus(x)))(
        torch.tensor([-200.0, 200.0, -90.0, 0.0])
    )


def test_softmax_of_an_empty_row():
    """A row of -inf is NaN after softmax."""
    inf = float("inf")
    torch.compile(lambda x: x.softmax(-1))(torch.tensor([[-inf, -inf], [0.0, -inf]]))


def test_conversion_of_nan_and_infinity():
    """nan_to_num with its three numbers."""
    inf = float("inf")
    torch.compile(lambda x: torch.nan_to_num(x, 1.0, 2.0, 3.0))(torch.tensor([float("nan"), inf, -inf, 5.0]))


def test_rounding_half_to_even():
    """round(0.5) is 0, round(2.5) is 2; with decimals too."""
    torch.compile(lambda x: (x.round(), torch.round(x / 10, decimals=1)))(torch.tensor([0.5, 1.5, 2.5, -0.5]))


def test_next_number_after_zero():
    """nextafter(0, 1) is the smallest number."""
    torch.compile(lambda a, b: torch.nextafter(a, b))(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 0.0]))


def test_comparison_with_nan():
    """Every comparison with NaN is False but !=."""
    nan = float("nan")
    torch.compile(lambda a, b: (a < b, a <= b, a == b, a != b, ~(a > b)))(
        torch.tensor([nan, 1.0]), torch.tensor([1.0, nan])
    )


def test_sum_of_differences_in_float64():
    """A sum that cancels: 1e16 + 1 - 1e16 depends on the order."""
    torch.compile(lambda a, b: (a + b) - a)(
        torch.tensor([1e16], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    )
