"""A traced `np.sqrt` was torch's square root, which is not correctly rounded everywhere; NumPy's is."""

import numpy as np
import pytest

import plumbline


@pytest.mark.cc
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_bit_is_that_of_numpy(backend: str, dtype: type) -> None:
    values = (np.random.default_rng(0).random(20_000) * 100).astype(dtype)
    values[:6] = 0.0, -0.0, np.inf, np.nan, np.finfo(dtype).tiny, np.finfo(dtype).max
    compiled = plumbline.compile(lambda n: np.sqrt(n), backend=backend, fullgraph=True)
    for array in (values, values[::3], values.reshape(100, 200).T, values[:0]):
        found, wanted = compiled(array), np.sqrt(array)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert found.tobytes() == wanted.tobytes(), "some square root differs"
