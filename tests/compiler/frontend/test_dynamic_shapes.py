"""Sizes become symbols after they change; what was assumed of them is guarded."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.compiler import api, dimension_marks
from plumbline.compiler.base.events import Captured, recording
from plumbline.compiler.base.options import Options


def captures(function, calls, **kwargs):
    api.reset()  # what an earlier call has captured of the function would do
    run = api.compile(function, backend="eager", options=Options(strict=True), **kwargs)
    with recording() as events:
        for call in calls:
            expected, actual = function(*call), run(*call)
            torch.testing.assert_close(actual, expected, rtol=0, atol=0)
    return sum(isinstance(event, Captured) for event in events)


def halves(x):
    return x.view(x.shape[0] // 2, -1).sum(0) / x.shape[0]


def branches(x):
    return x * 2 if x.shape[0] > 5 else x + x.size(0)


def joined(x, y):
    n = x.shape[0]
    return torch.cat([x, y])[: n - 1] + torch.arange(n - 1)[:, None]


def unrolled(x):
    for i in range(x.shape[0]):
        x = x + i
    return x


def sizes_returned(x):
    return [x.shape[0] * 2, x.sum()], (x.numel(), x.shape[1] % 2 == 0)


def rows(*sizes):
    return [(torch.randn(n, 4),) for n in sizes]


@pytest.mark.parametrize(
    ("function", "sizes", "expected"),
    [
        (halves, (4, 6, 8, 10), 2),
        (branches, (4, 6, 8, 3, 12), 3),
        (unrolled, (4, 6, 8), 3),
        (sizes_returned, (4, 6, 8, 9), 2),
    ],
)
def test_one_more_capture_after_a_size_changed(function, sizes, expected):
    assert captures(function, rows(*sizes)) == expected


def test_two_arguments_vary_together():
    assert captures(joined, [(torch.randn(n, 3), torch.randn(n, 3)) for n in (4, 6, 8, 5)]) == 2


def test_dynamic_true_captures_once_and_false_each_size():
    assert captures(halves, rows(4, 6, 8), dynamic=True) == 1
    assert captures(halves, rows(4, 6, 8), dynamic=False) == 3


def test_zero_and_one_are_captured_apart():
    assert captures(lambda x: x * 2 + x.shape[0], rows(4, 6, 1, 8, 0)) == 4


def test_marked_dimension_is_a_symbol_at_once():
    first = torch.randn(4, 4)
    dimension_marks.mark_dynamic(first, 0)
    assert captures(halves, [(first,), *rows(6, 8)]) == 1
    other = torch.randn(4, 4)
    other._dynamo_dynamic_indices = {0}
    assert captures(halves, [(other,), *rows(6, 8)]) == 1


def test_layout_that_is_not_contiguous_is_captured_apart():
    calls = [*rows(4, 6), (torch.randn(4, 8).T,), (torch.randn(8, 4),)]
    assert captures(lambda x: x * 2, calls) == 3


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 5)), min_size=1, max_size=6))
def test_any_sequence_of_sizes_equals_eager(shapes):
    def program(x):
        y = x.reshape(-1)[: x.numel() // 2]
        if x.shape[0] == x.shape[1]:
            y = y * 2
        if x.shape[0] % 3 == 1:
            y = torch.cat([y, y])
        return y + x.shape[1], x.sum(0).expand(x.shape[0] + 1, -1)

    captures(program, [(torch.randn(*shape),) for shape in shapes])


def scaled(x, k):
    return x * k + k // 2


def chosen(x, k):
    return (x + k, k + 1) if k > 3 else (x - k, k * 2)


def repeated(x, k):
    for i in range(k):
        x = x + i
    return x


@pytest.mark.parametrize(("function", "expected"), [(scaled, 2), (chosen, 3), (repeated, 5)])
def test_a_number_that_changed_becomes_a_symbol(function, expected):
    assert captures(function, [(torch.ones(3), k) for k in (2, 3, 4, 5, 9)]) == expected


def test_a_counter_on_an_object_becomes_a_symbol():
    class Counter:
        n = 0

    def count(x, counter):
        counter.n += 1
        return x * counter.n

    run = api.compile(count, backend="eager", options=Options(strict=True))
    eager, compiled = Counter(), Counter()
    with recording() as events:
        for _ in range(6):
            assert torch.equal(count(torch.ones(2), eager), run(torch.ones(2), compiled))
            assert eager.n == compiled.n
    assert sum(isinstance(event, Captured) for event in events) <= 3


@pytest.mark.cc
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_symbols_are_not_fixed_by_the_backends(backend):
    def program(x, k):
        return x.view(x.shape[0] // 2, -1).sum(0) * k / x.shape[0]

    run = api.compile(program, backend=backend)
    for n, k in ((4, 1), (6, 2), (8, 3), (10, 5), (6, 7)):
        x = torch.randn(n, 3)
        torch.testing.assert_close(run(x, k), program(x, k))
