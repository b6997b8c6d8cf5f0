"""The fuzzer of Python programs took addresses for results where a program wrote them in capitals."""

import pytest

from support.played_programs import difference_of


@pytest.mark.parametrize("change", ["upper", "swapcase", "title", "casefold"])
def test_addresses_are_no_results(change):
    module = f"""
held = lambda: None
def step(x):
    kept = object()
    return repr(held).{change}(), repr(kept).{change}(), x * 2
"""
    assert difference_of(module) == ""
