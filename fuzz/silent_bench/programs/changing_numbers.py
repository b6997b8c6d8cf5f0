"""Numbers and sizes that change from call to call."""

import torch


def called_with(run, *numbers):
    """Call with each number in turn."""
    for number in numbers:
        run(torch.ones(3), number)


def test_clamp_by_a_changing_float():
    """The third bound is used in the third call."""
    called_with(torch.compile(lambda x, k: (x.clamp(max=k), x * k)), 0.1, 0.2, 0.3, 0.4)


def test_fill_by_a_changing_float():
    """fill_ writes the number of this call."""

    def fill(x, k):
        return torch.empty_like(x).fill_(k), x * k

    called_with(torch.compile(fill), 0.1, 0.2, 0.3, 0.4)


def test_full_of_a_changing_float():
    """torch.full holds the number of this call."""
    called_with(torch.compile(lambda x, k: (torch.full((2,), k), x * k)), 0.1, 0.2, 0.3, 0.4)


def test_threshold_by_a_changing_float():
    """threshold compares with the number of this call."""
    called_with(torch.compile(lambda x, k: (torch.threshold(x, k, -1.0), x * k)), 0.5, 0.75, 1.5, 2.5)


def test_masked_fill_by_a_changing_float():
    """masked_fill writes the number of this call."""
    called_with(torch.compile(lambda x, k: (x.masked_fill(x > 0, k), x * k)), 0.1, 0.2, 0.3, 0.4)


def test_rounding_of_a_changing_float():
    """round(k) is that of this call."""
    called_with(torch.compile(lambda x, k: (x * round(k), x * k)), 0.4, 1.6, 2.6, 7.7)


def test_changing_float_to_a_power():
    """A number that turns negative, squared."""
    called_with(torch.compile(lambda x, k: x * k**2), 0.1, -2.7, -3.5)


def test_changing_float_modulo_one():
    """k % 1.0 of a changing number."""
    called_with(torch.compile(lambda x, k: x * (k % 1.0)), 0.5, 1.75, 2.25)


def test_changing_float_modulo_as_a_parameter():
    """abs(k) % 0.4 as the parameter of an operator."""

    def squash(x, k):
        return (x / 2).logit(abs(k) % 0.4)

    called_with(torch.compile(squash), 0.1, -2.7, 0.3)


def test_changing_float_turns_infinite():
    """inf, then NaN, as the number."""
    called_with(torch.compile(lambda x, k: x * k), 1.5, 2.5, float("inf"), float("nan"))


def test_changing_float_turns_to_minus_zero():
    """The sign of a zero given as a number."""
    called_with(torch.compile(lambda x, k: x / k), 2.0, 0.0, -0.0)


def test_integer_becomes_a_boolean():
    """True is not 1: adding it to a boolean tensor keeps the dtype."""
    run = torch.compile(lambda x, k: (x > 0) + k)
    run(torch.ones(3), 1)
    run(torch.ones(3), True)


def test_integer_becomes_a_float():
    """2 and 2.0 are equal, and give other dtypes."""
    run = torch.compile(lambda x, k: x * k)
    run(torch.arange(3), 2)
    run(torch.arange(3), 2.0)


def test_integer_crosses_zero():
    """x[:k] with k above, at and below zero."""
    run = torch.compile(lambda x, k: x[:k].sum())
    for k in (2, 3, 0, -1):
        run(torch.arange(6.0), k)


def test_floor_division_of_a_negative_number():
    """-7 // 2 is -4, -7 % 2 is 1."""
    called_with(torch.compile(lambda x, k: x * (k // 2) + k % 2), 7, 9, -7)


def test_mean_over_a_changing_size():
    """The divisor is the size of this call."""
    run = torch.compile(lambda x: x.sum() / x.shape[0])
    for n in (4, 5, 7):
        run(torch.ones(n))


def test_size_shrinks_to_one():
    """A size of one broadcasts; larger ones have to agree."""
    run = torch.compile(lambda x, y: x + y)
    run(torch.ones(4), torch.ones(4))
    run(torch.ones(5), torch.ones(5))
    run(torch.ones(5), torch.ones(1))


def test_size_shrinks_to_zero():
    """The sum of nothing is zero, its mean NaN."""
    run = torch.compile(lambda x: (x.sum(), x.mean()))
    for n in (3, 5, 0):
        run(torch.ones(n))


def test_stride_changes():
    """The second argument is transposed: the flat order follows the stride."""
    run = torch.compile(lambda x: x.reshape(-1) * torch.arange(x.numel()))
    run(torch.arange(6.0).reshape(2, 3))
    run(torch.arange(6.0).reshape(3, 2).t())


def test_storage_offset_changes():
    """Two slices of one tensor with other offsets."""
    base = torch.arange(12.0)
    run = torch.compile(lambda x: x.as_strided((2,), (1,), 1) * 2)
    run(base[0:4])
    run(base[4:8])


def test_branch_on_a_changing_size():
    """The branch is taken by the size of this call."""
    run = torch.compile(lambda x: x * 2 if x.shape[0] > 4 else x - 1)
    for n in (3, 4, 5, 6):
        run(torch.ones(n))
