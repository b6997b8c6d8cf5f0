"""Reads and writes of the same memory that change places: in-place operations, views, overlapping arguments."""

import contextlib

import torch


def test_dtype_view_read_after_source_is_overwritten():
    """y is computed from the bits of x, then x changes; y must keep the old bits."""

    def bits(x):
        y = x.view(torch.int32) * 2
        y.sub_(-4)
        x[:, 2:5] = 2
        return y.view(torch.int64)

    torch.compile(bits)(torch.arange(-12, 12).reshape(4, 6))


def test_shift_rows_through_clone():
    """x[1:] = x[:-1].clone() moves each row down by one; the clone may not be dropped."""

    def shift(x):
        x[1:] = x[:-1].clone()
        return x

    torch.compile(shift)(torch.arange(48.0).reshape(3, 4, 4))


def test_squeezed_alias_across_branch():
    """c is a view of a; both writes to a, before and after a data-dependent branch, show in c."""

    def last_write():
        a = torch.tensor([1])
        a = a[0:1]
        c = a.squeeze()
        a[0] = 0
        if a[0] < 1e5:
            pass
        a[0] = 2
        return c

    with torch.no_grad():
        torch.compile(last_write)()


def test_copy_of_own_flip():
    """a.copy_(a.flip(0)): source and destination overlap in reverse order."""

    def reverse(a):
        a.copy_(torch.flip(a, (0,)))
        return a

    torch.compile(reverse)(torch.arange(64.0))


def test_repeated_negative_index_assignment():
    """y[x] += y[x] with a computed, repeated index doubles the row once."""

    def double_row(x, y):
        x = x + 10
        y[x] += y[x]
        return y

    torch.manual_seed(0)
    torch.compile(double_row, dynamic=True)(torch.full((1, 2), -10), torch.randn(2, 32))


def test_write_through_dtype_view():
    """Writing through x.view(int32) changes the floats of x."""

    def set_bits(x, bits):
        x.view(torch.int32).copy_(bits)
        return x + 3

    torch.compile(set_bits)(torch.zeros(8), torch.arange(8, dtype=torch.int32) + 1065353216)


def test_copy_taken_before_source_changes():
    """target receives the rows of source as they were before source.add_(1)."""

    def move(target, source):
        target[0:, :] = source[0:, :]
        source.add_(1)
        return source

    torch.compile(move)(torch.zeros(3, 4), torch.arange(12.0).reshape(3, 4))


def test_flip_added_after_indexed_write():
    """The flip reads what index_put_ has written, at other positions than it writes itself."""

    def mirror(x):
        x.index_put_((torch.arange(x.size(0)),), x * 2.0)
        x.add_(x.flip(0))
        return x

    torch.compile(mirror)(torch.arange(32.0).reshape(4, 8))


def test_indexed_copy_of_own_embedding():
    """index_copy permutes the columns of a tensor by its own values."""
    torch.manual_seed(0)
    embedding = torch.nn.Embedding(10, 4)

    def permute(x, order):
        rows = embedding(x)
        return torch.index_copy(rows, 1, order, rows)

    with torch.no_grad():
        torch.compile(permute)(torch.tensor([1, 7, 2, 9]), torch.tensor([3, 1, 0, 2]))


def test_indexed_addition_to_expanded_rows():
    """Rows of an expanded zero row are different rows once something is added to one of them."""

    def scatter(rows):
        target = torch.zeros(1, 8).expand(4, -1)
        return torch.index_add(target, 0, torch.tensor([0, 2]), rows)

    torch.compile(scatter)(torch.ones(2, 8))


def test_indexed_fill_of_expanded_rows():
    """index_fill of an expanded row fills the named rows only."""

    def fill(x):
        return torch.index_fill(x.expand(4, -1), 0, torch.tensor([1]), 5.0)

    torch.compile(fill)(torch.zeros(1, 8))


def test_write_by_a_permutation_with_repeats():
    """The indexes come from randperm and are all the same one: each element is written once from the old value."""

    def bump(x):
        order = torch.randperm(5)
        same = torch.as_strided(order, (5,), (0,))
        x.index_put_((same,), x[same] + 1.0)
        return x

    torch.manual_seed(42)
    torch.compile(bump, options={"fallback_random": True})(torch.zeros(5))


def test_arguments_share_memory_at_the_second_call():
    """The first call has two tensors, the second the same one twice; y is read after x changes."""

    def total(x, y):
        x.mul_(2)
        return x + y

    run = torch.compile(total)
    run(torch.ones(2), torch.ones(2))
    x = torch.ones(2)
    run(x, x.detach())


def test_overlapping_arguments():
    """x and y overlap by two elements; the write to x is seen through y."""

    def total(x, y):
        x.add_(1)
        return y * 2

    base = torch.arange(6.0)
    torch.compile(total)(base[:4], base[2:])


def test_adam_step_with_item_in_a_loop():
    """An optimizer step reads its counter as a number; running averages feed the next iteration."""

    def step(param, grad, mean, square, count):
        count.add_(1)
        mean.mul_(0.9).add_(grad, alpha=0.1)
        square.mul_(0.999).addcmul_(grad, grad, value=0.001)
        number = count.item()
        size = 0.001 / (1 - 0.9**number)
        denominator = (square.sqrt() / (1 - 0.999**number) ** 0.5).add_(1e-8)
        param.addcdiv_(mean, denominator, value=-size)

    def train(param, grad):
        param, mean, square, count = param.clone(), torch.zeros_like(param), torch.zeros_like(param), torch.zeros(())
        for _ in range(5):
            step(param, grad, mean, square, count)
        return param

    torch.manual_seed(0)
    torch.compile(train)(torch.randn(8), torch.randn(8))


def test_copy_of_shifted_self_in_two_steps():
    """A shift register: every slot takes its neighbour's old value."""

    def push(buffer, value):
        buffer[:-1] = buffer[1:].clone()
        buffer[-1] = value
        return buffer.sum()

    torch.compile(push)(torch.arange(8.0), torch.tensor(9.0))


def test_swap_of_two_arguments():
    """a and b change places through a temporary."""

    def swap(a, b):
        kept = a.clone()
        a.copy_(b)
        b.copy_(kept)

    torch.compile(swap)(torch.zeros(4), torch.ones(4))


def test_write_before_a_failing_read():
    """The write stays when the next line raises and the error is caught inside."""

    def read(x, i):
        x.add_(1)
        try:
            return x[i]
        except IndexError:
            return "caught"

    torch.compile(read)(torch.zeros(3), 7)


def test_write_before_an_escaping_error():
    """The write stays when the error escapes."""

    def read(x, i):
        x.add_(1)
        return x[i]

    with contextlib.suppress(IndexError):
        torch.compile(read)(torch.zeros(3), torch.tensor([5]))
