"""NumPy code that torch.compile traces through its own NumPy layer."""

import numpy as np
import torch


def test_fix_truncates():
    """np.fix(1.5) is 1.0."""
    torch.compile(lambda a: np.fix(a))(np.array([1.5, -1.5, 2.5, -0.5], dtype=np.float32))


def test_cbrt_of_negative():
    """np.cbrt(-8) is -2."""
    torch.compile(lambda a: np.cbrt(a))(np.array([8.0, -8.0], dtype=np.float32))


def test_clip_int8_with_wide_bounds():
    """Bounds outside int8 leave int8 data alone."""
    clip = torch.compile(lambda a: np.clip(a, -1000, 1000))
    clip(np.array([-128, -3, 0, 100], dtype=np.int8))


def test_clip_uint8_with_negative_bound():
    """np.clip(uint8, -2, 5) keeps 0..5."""
    clip = torch.compile(lambda a: np.clip(a, -2, 5))
    clip(np.array([0, 1, 3, 200, 255], dtype=np.uint8))


def test_sign_of_nan():
    """np.sign(nan) is nan."""
    torch.compile(lambda a: np.sign(a))(np.array([np.nan, 2.0], dtype=np.float32))


def test_heaviside_of_nan():
    """np.heaviside(nan, h) is nan."""
    step = torch.compile(lambda a: np.heaviside(a, np.float32(0.5)))
    step(np.array([np.nan, -1.0, 0.0, 2.0], dtype=np.float32))


def test_root_of_float64_array():
    """np.sqrt of float64: a control."""
    torch.compile(lambda a: np.sqrt(a) + 1)(np.linspace(0.0, 5.0, 7))


def test_mean_of_integer_array():
    """np.mean of integers is a float64."""
    torch.compile(lambda a: np.mean(a))(np.array([1, 2, 4], dtype=np.int32))


def test_floor_division_of_arrays():
    """np.floor_divide of negative integers."""
    torch.compile(lambda a, b: a // b)(np.array([-7, 7], dtype=np.int64), np.array([2, -2], dtype=np.int64))


def test_rounding_of_array_to_decimals():
    """np.round(2.675, 2), and -0.0."""
    torch.compile(lambda a: np.round(a, 2))(np.array([2.675, -0.001, 1.005]))


def test_array_is_written_in_place():
    """The caller's array is changed."""

    def bump(a):
        a += 1
        return a.sum()

    torch.compile(bump)(np.arange(4.0))


def test_median_of_array():
    """np.median of an even number of values is the mean of the two in the middle."""
    torch.compile(lambda a: np.median(a))(np.array([1.0, 2.0, 4.0, 10.0]))
