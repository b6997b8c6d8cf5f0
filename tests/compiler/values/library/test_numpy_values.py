"""Arrays over tensors: memory is shared, read-only arrays are refused, arithmetic has NumPy's bits."""

import operator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import plumbline
from plumbline.compiler.values.library.numpy_arrays import memory_of
from plumbline.compiler.values.library.numpy_values import dtype_of
from plumbline.compiler.values.reasons import Break

NUMBERS = st.floats(width=32, allow_nan=True, allow_infinity=True, allow_subnormal=False)
OPERATORS = (operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.eq)


def every_operation(a, b):
    return [operation(a, b) for operation in OPERATORS] + [np.sign(a), np.fix(a), np.rint(b), np.clip(a, -1, 2.5)]


COMPILED = plumbline.compile(every_operation, backend="eager", fullgraph=True)


def test_memory_is_shared():
    array = np.zeros(3, dtype=np.float32)
    memory_of(array).add_(1)
    assert array.tolist() == [1, 1, 1]


def test_a_read_only_array_is_refused():
    array = np.zeros(3)
    array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        memory_of(array)


def test_a_dtype_that_numpy_lacks_breaks():
    with pytest.raises(Break):
        dtype_of(torch.bfloat16)


@settings(deadline=None)  # the first example compiles
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=19, max_size=19))
def test_arithmetic_has_the_bits_of_numpy(pairs):
    first, second = (np.array([pair[place] for pair in pairs], dtype=np.float32) for place in (0, 1))
    with np.errstate(all="ignore"):
        expected, actual = every_operation(first, second), COMPILED(first, second)
    for here, there in zip(expected, actual, strict=True):
        assert here.dtype == there.dtype
        np.testing.assert_array_equal(here, there)
        if here.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(here[~np.isnan(here)]), np.signbit(there[~np.isnan(there)]))
