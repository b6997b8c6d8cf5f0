"""Values of Python inside the function: iterators, attributes, conversions, text."""

import functools

import torch


@functools.lru_cache
def cached_scale(name):
    return float(len(name))


def test_iter_of_partly_consumed_reversed():
    """iter() of a reversed iterator continues where it stood; it does not start over."""

    def rest(x):
        backwards = reversed([1, 2, 3, 4])
        next(backwards)
        for k in iter(backwards):
            x = x * 10 + k
        return x

    torch.compile(rest)(torch.zeros(2, dtype=torch.int64))


def test_list_that_grows_while_it_is_read():
    """A generator reads a list to which it appends."""

    def grow(x):
        values = [x.sum()]

        def read():
            for item in values:
                if len(values) < 3:
                    values.append(item + 1)
                yield item

        return torch.stack(list(read())).sum()

    torch.compile(grow)(torch.ones(1))


def test_integer_has_no_length():
    """hasattr(n, "__len__") is False, for a number that changes too."""

    def choose(x, n):
        return x + n if hasattr(n, "__len__") else x - n

    run = torch.compile(choose)
    for n in (2, 3, 4):
        run(torch.zeros(2), n)


def test_list_is_not_callable():
    """hasattr([1], "__call__") is False."""

    def choose(x):
        return x + 1 if hasattr([1], "__call__") else x - 1

    torch.compile(choose)(torch.zeros(2))


def test_missing_attribute_has_a_default():
    """getattr(n, name, default) gives the default for a changing number."""

    def shift(x, n):
        return x + getattr(n, "gain", 7)

    run = torch.compile(shift)
    for n in (0.5, 1.5, 2.5):
        run(torch.zeros(2), n)


def test_new_of_a_size():
    """x.new(size) makes a tensor of that shape."""

    def blank(x):
        return x.new(x.size()).fill_(1)

    torch.compile(blank)(torch.zeros(2, 3))


def test_ascii_conversion_calls_repr_once():
    """f"{thing!a}" asks for the text once."""

    class Thing:
        def __init__(self):
            self.asked = 0

        def __repr__(self):
            self.asked += 1
            return "thing"

    thing = Thing()

    def work(x):
        text = f"{thing!a}"
        return x * len(text)

    torch.compile(work)(torch.ones(2))


def test_wrapper_of_a_disabled_function_runs():
    """A decorator with functools.wraps around a disabled function: the wrapper's work is done."""

    @torch.compiler.disable(recursive=False)
    def inner(x):
        return x + 1

    @functools.wraps(inner)
    def outer(x):
        return inner(x) * 100

    torch.compile(lambda x: outer(x))(torch.ones(2))


def test_cached_function_is_asked_once():
    """lru_cache inside: one miss, then hits."""

    def work(x):
        return x * cached_scale("name")

    run = torch.compile(work)
    run(torch.ones(2))
    run(torch.ones(2))


def test_negative_base_to_a_tensor():
    """(-2) ** x: the sign belongs to the base."""
    torch.compile(lambda x: (-2) ** x)(torch.tensor([0.0, 2.0, 3.0]))


def test_larger_of_a_number_and_not_a_number():
    """max() of two tensors keeps the first one, unless the second is larger; nan never is."""
    torch.compile(lambda x: max(x[0], x[1]))(torch.tensor([1.0, float("nan")]))


def test_gradient_of_the_larger_of_two_equal_tensors():
    """max() of two equal tensors is the first one, which takes the whole gradient."""
    torch.compile(lambda x: max(x[0], x[1]))(torch.tensor([2.0, 2.0], requires_grad=True))


def test_loop_variable_of_a_closure():
    """Three closures share one variable, which is 2 when they are called."""

    def work(x):
        shifts = [lambda: k for k in range(3)]
        for shift in shifts:
            x = x * 10 + shift()
        return x

    torch.compile(work)(torch.zeros(2))


def test_exception_variable_is_gone():
    """The name of an except clause is unbound after it."""

    def work(x):
        error = 5
        try:
            raise ValueError("no")
        except ValueError as error:  # noqa: F811  # the rebinding is what is tried
            x = x + len(error.args)
        return x + (1 if "error" in locals() else 2)

    torch.compile(work)(torch.zeros(2))


def test_zip_stops_at_the_shorter():
    """zip(strict=False) drops what has no partner."""

    def work(x):
        for a, b in zip([1, 2, 3], (4, 5), strict=False):
            x = x * a + b
        return x

    torch.compile(work)(torch.ones(2))


def test_integer_keys_keep_their_order():
    """A dictionary remembers the order of insertion, also after a key is written again."""

    def work(x):
        table = {2: 1.0, 1: 2.0}
        table[2] = 3.0
        table[0] = 4.0
        for key, value in table.items():
            x = x * value + key
        return x

    torch.compile(work)(torch.ones(2))
