"""NumPy asks a dictionary that is compared with a dtype for its entries, which a default dictionary then makes."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
import collections
import numpy

made = collections.defaultdict(int)
whole = numpy.dtype('int32')

def step(x):
    return COMPARISON, sorted(made), x + 1
"""


@pytest.mark.parametrize("comparison", ["made == whole", "whole == made", "made != whole", "whole in [made, 1]"])
def test_their_entries_are_made(comparison):
    assert difference_of(PROGRAM.replace("COMPARISON", comparison)) == ""
