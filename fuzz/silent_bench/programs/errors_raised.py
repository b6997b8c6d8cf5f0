"""Programs that eager rejects and compiled code computes, or the other way round."""

import contextlib

import torch


def test_bernoulli_probability_above_one():
    """p = 1.5 is an error."""
    draw = torch.compile(lambda p: torch.bernoulli(p))
    with contextlib.suppress(RuntimeError):
        draw(torch.full((8,), 1.5))


def test_assert_on_tensor_after_print():
    """A failing assert on a tensor still fails when a print breaks the graph before it."""

    def check():
        a = torch.tensor([1.0, -2.0])
        positive = torch.all(a > 0)
        print(end="")
        assert positive
        return 1

    with contextlib.suppress(AssertionError, RuntimeError):
        torch.compile(check)()


def test_matmul_of_mixed_dtypes():
    """float16 @ float32 is an error."""
    torch.manual_seed(0)
    product = torch.compile(lambda x, y: torch.matmul(x, y))
    with contextlib.suppress(RuntimeError):
        product(torch.randn(2, 3, 4).half(), torch.randn(2, 4, 3))


def test_softmax_dimension_out_of_range():
    """The error is an IndexError, which callers catch."""
    normalise = torch.compile(lambda x: torch.softmax(x, dim=10))
    with contextlib.suppress(IndexError):
        normalise(torch.arange(4.0))


def test_cross_entropy_targets_above_one():
    """binary_cross_entropy refuses targets above one."""
    loss = torch.compile(lambda t: torch.nn.functional.binary_cross_entropy(torch.ones_like(t), t))
    with contextlib.suppress(RuntimeError):
        loss(torch.full((4, 4), 1.5))


def test_select_out_of_range():
    """Index 1 of a dimension of size 1 is an error."""

    def halves(x):
        base = x.unsqueeze(1)
        return torch.cat([torch.select(base, 1, 0), torch.select(base, 1, 1)], -1)

    with contextlib.suppress(IndexError):
        torch.compile(halves)(torch.arange(12.0).reshape(3, 4))


def test_smooth_loss_with_negative_beta():
    """beta = -1 is an error."""
    loss = torch.compile(lambda a, b: torch.nn.functional.smooth_l1_loss(a, b, beta=-1.0))
    with contextlib.suppress(RuntimeError):
        loss(torch.tensor([1.0]), torch.tensor([0.0]))


def test_cholesky_of_indefinite_matrix():
    """A matrix with a negative eigenvalue has no Cholesky factor."""
    factor = torch.compile(lambda a: torch.linalg.cholesky(a))
    with contextlib.suppress(RuntimeError):
        factor(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))


def test_celu_with_alpha_zero():
    """alpha = 0 is an error."""
    activate = torch.compile(lambda x: torch.celu_(x, 0.0))
    with contextlib.suppress(RuntimeError):
        activate(torch.tensor([-2.0, 0.0, 1.0]))


def test_cumulative_logarithm_of_a_byte():
    """logcumsumexp has no kernel for uint8, of no dimensions either."""
    total = torch.compile(lambda x: torch.logcumsumexp(x, 0))
    with contextlib.suppress(NotImplementedError):
        total(torch.tensor(0, dtype=torch.uint8))


def test_write_to_overlapping_self():
    """x[1:] += x[:-1] is refused: the two overlap."""

    def smear(x):
        x[1:] += x[:-1]
        return x

    with contextlib.suppress(RuntimeError):
        torch.compile(smear)(torch.ones(4))


def test_one_hot_class_out_of_range():
    """Class 5 of 3 is an error."""
    encode = torch.compile(lambda t: torch.nn.functional.one_hot(t, 3))
    with contextlib.suppress(RuntimeError):
        encode(torch.tensor([5]))


def test_integer_times_fraction_in_place():
    """An integer tensor cannot hold the product."""

    def shrink(x):
        x.mul_(0.5)
        return x

    with contextlib.suppress(RuntimeError):
        torch.compile(shrink)(torch.arange(4))


def test_rounding_of_booleans():
    """round has no kernel for booleans."""
    with contextlib.suppress(RuntimeError, NotImplementedError):
        torch.compile(lambda x: x.round())(torch.tensor([True, False]))


def test_one_minus_boolean():
    """1 - mask of booleans is refused."""
    with contextlib.suppress(RuntimeError):
        torch.compile(lambda x: 1 - x)(torch.tensor([True, False]))


def test_division_of_booleans_in_a_sum():
    """addcdiv of booleans is refused, on many elements too."""
    mask = torch.ones(30, dtype=torch.bool)
    with contextlib.suppress(RuntimeError, NotImplementedError):
        torch.compile(lambda x: torch.addcdiv(x, x, x))(mask)


def test_gather_index_out_of_range():
    """An index beyond the source is an error, not what lies behind it in memory."""
    with contextlib.suppress(RuntimeError, IndexError):
        torch.compile(lambda x, i: x.gather(0, i))(torch.arange(4.0), torch.tensor([1, 9]))


def test_embedding_index_out_of_range():
    """Row 12 of 10 is an error."""
    torch.manual_seed(0)
    weight = torch.randn(10, 3)
    look_up = torch.compile(lambda i: torch.nn.functional.embedding(i, weight))
    with contextlib.suppress(IndexError, RuntimeError):
        look_up(torch.tensor([0, 12]))


def test_integer_division_by_zero():
    """7 // 0 on integers is an error."""
    with contextlib.suppress(RuntimeError):
        torch.compile(lambda a, b: a // b)(torch.tensor([7, 8]), torch.tensor([0, 2]))


def test_key_error_is_caught_by_the_caller():
    """A missing key raises KeyError through the compiled function."""
    look_up = torch.compile(lambda x, table: x * table["scale"])
    with contextlib.suppress(KeyError):
        look_up(torch.ones(2), {"shift": 1.0})
