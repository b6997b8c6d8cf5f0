"""Integer arithmetic: sums that wrap, casts, shifts, division, the smallest value."""

import torch


def test_uint8_sum_widened_after_wrapping():
    """128 + 128 wraps to 0 in uint8 before it is widened to int16."""
    double = torch.compile(lambda x: (x + x).to(torch.int16))
    double(torch.tensor(128, dtype=torch.uint8))


def test_int32_matmul_sum_wraps():
    """Sums of int32 products wrap, then widen; a factorised product must wrap alike."""
    score = torch.compile(lambda x, y, z: (x @ y + x @ z).sum(1))
    x = torch.full((2, 2), 2**15, dtype=torch.int32)
    y = torch.full((2, 2), 2**14, dtype=torch.int32)
    score(x, y, y.clone())


def test_negative_float_to_uint8():
    """Negative floats cast to uint8 wrap through the signed integer as in eager."""
    quantise = torch.compile(lambda x: x.to(torch.uint8))
    quantise(torch.tensor([1.5, -0.3, -2.2, 0.6, -1.1] * 4))


def test_absolute_value_of_the_smallest_integer():
    """abs(-128) is -128 in int8."""
    measure = torch.compile(lambda x: (x.abs() > 0, x.abs().float()))
    measure(torch.full((3,), -128, dtype=torch.int8))
    measure(torch.full((3,), -32768, dtype=torch.int16))


def test_negated_bytes_are_compared():
    """-6 is 250 in uint8, which is not below 4."""

    def negate(x):
        y = torch.neg(x)
        return y, torch.lt(y, torch.tensor(4, dtype=torch.uint8))

    torch.compile(negate)(torch.tensor(6, dtype=torch.uint8))


def test_negated_absolute_bytes_are_summed():
    """-abs(200) is 56 in uint8, four times 224."""

    def total(x):
        y = -x.abs()
        return torch.cat([y, y]).sum()

    torch.compile(total)(torch.tensor([200, 200], dtype=torch.uint8))


def test_byte_of_negative_floats():
    """byte() of small negative floats."""
    torch.manual_seed(1)
    torch.compile(lambda x: x.byte())(torch.randn(20) * 3)


def test_distributed_product_of_small_integers():
    """(x + y) * c and x * c + y * c wrap alike in int8."""

    def both(x, y):
        return ((x + y) * 6).float(), (x * 6 + y * 6).float()

    torch.compile(both)(torch.tensor([5, 100], dtype=torch.int8), torch.tensor([20, 90], dtype=torch.int8))


def test_shift_by_the_width():
    """x >> 8 of a byte is 0, and so is x << 8."""

    def shift(x, k):
        return x >> k, x << k

    torch.compile(shift)(torch.tensor([255, 1], dtype=torch.uint8), torch.tensor([8, 9], dtype=torch.uint8))


def test_shift_of_a_negative_number():
    """-5 >> 1 is -3."""
    torch.compile(lambda x: x >> 1)(torch.tensor([-5, -1, 7], dtype=torch.int16))


def test_clamp_of_booleans():
    """The smaller of two booleans, and the larger."""

    def bounds(a, b):
        return torch.clamp_max(a, b), torch.clamp_min(a, b)

    torch.compile(bounds)(torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False]))


def test_floor_division_of_negative_integers():
    """-7 // 2 is -4; trunc gives -3."""

    def divide(a, b):
        return a // b, torch.div(a, b, rounding_mode="trunc"), a % b, torch.fmod(a, b)

    torch.compile(divide)(torch.tensor([-7, 7, -7]), torch.tensor([2, -2, -2]))


def test_product_of_small_integers_compared():
    """100 * 100 wraps to 16 in int8 before it is compared."""
    torch.compile(lambda x: x * x > 100)(torch.full((4,), 100, dtype=torch.int8))


def test_mean_of_a_wrapped_sum():
    """(a + b) // 2 of bytes wraps before it is halved."""
    torch.compile(lambda a, b: (a + b) // 2)(
        torch.tensor([200, 10], dtype=torch.uint8), torch.tensor([100, 20], dtype=torch.uint8)
    )


def test_large_integer_to_float_and_back():
    """2**53 + 1 has no float64; 2**24 + 1 no float32."""
    torch.compile(lambda x: x.to(torch.float32).to(torch.int64) + x)(torch.tensor([2**24 + 1, 3]))


def test_bitwise_not_of_a_byte():
    """~5 is 250 in uint8, also when it is widened."""
    torch.compile(lambda x: (~x).to(torch.int32))(torch.tensor([5, 0], dtype=torch.uint8))


def test_subtraction_below_zero():
    """3 - 5 is 254 in uint8."""
    torch.compile(lambda a, b: (a - b).to(torch.int64) + (a - b > 100))(
        torch.tensor([3, 9], dtype=torch.uint8), torch.tensor([5, 4], dtype=torch.uint8)
    )


def test_power_of_small_integers():
    """7 ** 3 wraps to 87 in int8."""
    torch.compile(lambda x: (x**3).float())(torch.tensor([7, -7, 2], dtype=torch.int8))


def test_integer_array_from_an_addition_of_constants():
    """Zeros made inside, summed with themselves, cast and scaled."""

    def scale():
        a = torch.zeros(1, 2, dtype=torch.int32)
        a = a + a
        return a.to(torch.float32) * 0.8

    torch.compile(scale)()
