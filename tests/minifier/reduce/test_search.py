from hypothesis import given
from hypothesis import strategies as st

from plumbline.minifier.reduce.search import first_failing, gallop, minimal_subset


@given(st.integers(1, 300), st.data())
def test_bisection_finds_the_first_failing_number_in_log_n_tests(high, data):
    first = data.draw(st.integers(1, high))
    asked = []

    def fails(number):
        asked.append(number)
        return number >= first

    assert first_failing(0, high, fails) == first
    assert len(asked) <= high.bit_length()


@given(st.integers(1, 300), st.data())
def test_gallop_finds_the_first_failing_number(high, data):
    first = data.draw(st.integers(1, high))
    assert gallop(high, lambda number: number >= first) == first


@given(st.integers(0, 300))
def test_gallop_gives_up_after_few_tests_when_nothing_fails(high):
    asked = []
    assert gallop(high, lambda number: bool(asked.append(number))) is None
    assert len(asked) <= 4
    assert len(set(asked)) == len(asked)


@given(st.integers(1, 60), st.data())
def test_minimal_subset_is_exactly_the_needed_items(count, data):
    items = [object() for _ in range(count)]
    needed = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=min(count, 4)))
    asked = 0

    def fails(chosen):
        nonlocal asked
        asked += 1
        return all(items[number] in chosen for number in needed)

    assert minimal_subset(items, fails) == [items[number] for number in sorted(needed)]
    assert asked <= (len(needed) + 1) * (count.bit_length() + 1) + 1


@given(st.integers(1, 60), st.data())
def test_minimal_subset_tries_short_prefixes_first_where_they_are_likely(count, data):
    items = list(range(count))
    needed = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=min(count, 4)))
    asked = []

    def fails(chosen):
        asked.append(len(chosen))
        return needed <= set(chosen)

    assert minimal_subset(items, fails, likely_first=True) == sorted(needed)
    if max(needed) < 32:
        assert max(asked) <= 2 * (max(needed) + 1)


def test_minimal_subset_of_what_never_fails_is_none():
    assert minimal_subset(list("abcdef"), lambda chosen: False) is None
    assert minimal_subset(list("abcdef"), lambda chosen: False, likely_first=True) is None


@given(st.sets(st.frozensets(st.integers(0, 7), min_size=1), min_size=1))
def test_minimal_subset_of_any_test_fails_itself(failing):
    """Also where the test is not monotone: whatever comes out has been tested."""
    found = minimal_subset(list(range(8)), lambda chosen: frozenset(chosen) in failing)
    assert found is None or frozenset(found) in failing
