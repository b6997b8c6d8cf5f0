"""Results that share memory, or do not, other than in eager: a later write shows it."""

import torch


def test_eval_dropout_returns_its_input():
    """dropout(training=False) is the identity and shares memory, so add_ reaches the input."""

    def shift(x):
        y = torch.nn.functional.dropout(x, 0.5, training=False)
        y.add_(1)
        return y

    torch.compile(shift)(torch.ones(3))


def test_scatter_result_outlives_its_source():
    """y is a modified copy of x; zeroing x afterwards must leave y alone."""

    def replace(x, rows):
        y = torch.slice_scatter(x, rows, 0, 1, 3)
        x.zero_()
        return y

    torch.compile(replace)(torch.arange(1.0, 21.0).reshape(5, 4), torch.full((2, 4), -1.0))


def test_clone_taken_after_indexed_write():
    """The returned clone is memory of its own, also after c[position] = x."""

    def store(c, x, position):
        c[position] = x
        return c.clone()

    cache = torch.tensor([0, 0])
    torch.compile(store)(cache, torch.tensor([2]), torch.tensor([0]))
    cache.fill_(9)


def test_adding_zeros_makes_a_new_tensor():
    """x + zeros is memory of its own: writing to the result leaves x alone."""
    x = torch.ones(3)
    result = torch.compile(lambda x: x + torch.zeros(3))(x)
    result.add_(5)


def test_multiplying_by_ones_makes_a_new_tensor():
    """x * ones is memory of its own."""
    x = torch.arange(4.0)
    result = torch.compile(lambda x: x * torch.ones(4))(x)
    result.zero_()


def test_two_equal_layer_norms_are_two_tensors():
    """Two results of equal calls are two tensors, and writing to one leaves the other alone."""

    def both(x):
        return torch.nn.functional.layer_norm(x, (4,)), torch.nn.functional.layer_norm(x, (4,))

    torch.manual_seed(0)
    first, _ = torch.compile(both)(torch.randn(2, 4))
    first.zero_()


def test_two_equal_maxima_are_two_tensors():
    """The values of x.max(0), asked for twice, do not share memory."""

    def both(x):
        return x.max(0).values, x.max(0).values

    torch.manual_seed(0)
    first, _ = torch.compile(both)(torch.randn(3, 4))
    first.add_(1)


def test_view_of_argument_is_a_view():
    """The returned row is a view: writing to it changes the argument."""
    x = torch.zeros(3, 4)
    row = torch.compile(lambda x: x[1])(x)
    row.fill_(7)


def test_contiguous_of_contiguous_is_the_same_memory():
    """contiguous() of a contiguous tensor copies nothing."""
    x = torch.zeros(6)
    same = torch.compile(lambda x: x.contiguous().view(2, 3))(x)
    same.fill_(1)


def test_identity_to_same_dtype_shares_memory():
    """x.to(x.dtype) is x, so a write after it reaches the argument."""

    def shift(x):
        y = x.to(torch.float32)
        y.add_(1)
        return y

    torch.compile(shift)(torch.zeros(3))


def test_reshape_of_transposed_copies():
    """reshape of a transposed tensor is a copy, so the write stays in it."""

    def flatten(x):
        y = x.t().reshape(-1)
        y.zero_()
        return y

    torch.compile(flatten)(torch.arange(6.0).reshape(2, 3))


def test_output_is_not_overwritten_by_the_next_call():
    """The result of one call keeps its values during the next."""
    double = torch.compile(lambda x: x * 2)
    first = double(torch.ones(4))
    double(torch.zeros(4))
    first.sum()
