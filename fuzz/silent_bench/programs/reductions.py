"""Sums, means, extremes, scans and normalisation over many elements."""

import torch


def test_instance_norm_on_large_images():
    """Variance over a million pixels loses accuracy if the running sums are naive."""
    torch.manual_seed(0)
    norm = torch.compile(torch.nn.InstanceNorm2d(3))
    norm(torch.randn(1, 3, 1024, 1024) + 10)


def test_cumsum_of_uint8_accumulates_in_int64():
    """cumsum of bytes must not wrap at 255, and its dtype is int64."""
    total = torch.compile(lambda x: torch.cumsum(x, 0))
    total(torch.ones(300, dtype=torch.uint8))


def test_sum_of_a_sum():
    """The sum of a number is that number."""
    torch.compile(lambda x: x.sum().sum())(torch.ones(5))


def test_mean_of_a_loss():
    """cross_entropy gives a mean; its mean is the same."""
    torch.manual_seed(0)
    loss = torch.compile(lambda a, b: torch.nn.functional.cross_entropy(a, b).mean())
    loss(torch.randn(6, 4), torch.tensor([0, 1, 2, 3, 0, 1]))


def test_sum_of_a_maximum():
    """x.max().sum() is the maximum."""
    torch.manual_seed(0)
    torch.compile(lambda x: (x.max().sum(), x.mean().var(unbiased=False)))(torch.randn(3, 4))


def test_pooled_norm_of_an_image():
    """Instance norm, pooling to one pixel, normalisation: what is left is nothing but rounding."""
    functional = torch.nn.functional
    torch.manual_seed(42)
    image = torch.randn(4, 3, 10, 12)
    norm, pool = torch.nn.InstanceNorm2d(3), torch.nn.AdaptiveAvgPool2d((1, 1))

    def work():
        t = functional.normalize(pool(norm(image)), dim=0)
        return functional.normalize(functional.hardswish(t * image), dim=0)

    torch.compile(work)()


def test_position_of_the_first_maximum():
    """argmax of equal values gives one of them, and argmax of NaN its position."""
    nan = float("nan")
    torch.compile(lambda x: (x.argmax(), x.argmin(-1)))(torch.tensor([[1.0, 3.0, 3.0], [nan, 3.0, -1.0]]))


def test_maximum_with_nan_in_a_row():
    """amax and max give NaN for a row with NaN."""
    nan = float("nan")
    torch.compile(lambda x: (x.amax(-1), x.max(-1).values))(torch.tensor([[1.0, nan, 3.0], [4.0, 5.0, 6.0]]))


def test_sum_over_nothing():
    """The sum over an empty dimension is 0, the product 1."""
    torch.compile(lambda x: (x.sum(0), x.prod(0), x.any(0), x.all(0)))(torch.ones(0, 3))


def test_variance_of_one():
    """The unbiased variance of one element is NaN."""
    torch.compile(lambda x: (x.var(-1), x.std(-1, unbiased=False)))(torch.ones(3, 1))


def test_variance_far_from_zero():
    """The variance of numbers near 10000."""
    torch.manual_seed(0)
    torch.compile(lambda x: x.var(-1))(torch.randn(4, 4096) + 10000)


def test_boolean_sum_is_counted():
    """The sum of booleans is an integer count."""
    torch.compile(lambda x: ((x > 0).sum(), (x > 0).sum(-1, dtype=torch.int8)))(
        torch.arange(-150.0, 150.0).reshape(1, -1)
    )


def test_scans_of_nan():
    """cummax and cumsum carry NaN on."""
    nan = float("nan")
    torch.compile(lambda x: (x.cumsum(0), x.cummax(0).values, x.cumprod(0)))(torch.tensor([1.0, nan, 3.0]))


def test_stable_sort_of_equal_values():
    """A stable sort keeps the order of equal values."""
    torch.compile(lambda x: torch.sort(x, stable=True))(torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0]))


def test_sum_of_a_million_floats():
    """A long sum in float32: a control, the order of adding is free."""
    torch.manual_seed(0)
    torch.compile(lambda x: x.sum())(torch.randn(1_000_000))


def test_soft_maximum_and_loss():
    """log_softmax and its gradient: a control."""
    torch.manual_seed(0)
    x = torch.randn(32, 64, requires_grad=True)
    torch.compile(lambda x: x.log_softmax(-1)[:, 0].mean())(x).backward()
