"""Every traced NumPy function against NumPy: no row, no trace."""

import warnings

import numpy as np
import pytest

import plumbline
from support.numpy_table import DTYPES, Entry, entries

ROWS = list(entries())
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -2.5, 3.0, 1e30, -1e-40, 100.0, 1.5, 2.5, -0.5]


def of_dtype(dtype, generator, shape):
    if dtype == np.bool_:
        return generator.random(shape) < 0.5
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        values = np.array([0, 1, info.min, info.max, 2, info.max - 1, 3, info.min + 1, 7], dtype)
        return generator.choice(values, shape)
    return generator.choice(np.array(SPECIAL), shape).astype(dtype)


def mild(dtype, generator, shape):
    """Return numbers of which nothing warns."""
    return (generator.random(shape) * 3 + 0.1 + (np.eye(*shape[:2]) if len(shape) == 2 else 0)).astype(dtype)


def answer(run, arrays):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            value = run(*arrays)
        except Exception as error:
            return type(error), str(error)
    return value, sorted({str(one.message) for one in heard})


def demand_alike(ours, numpys, entry: Entry):
    (one, heard), (other, said) = ours, numpys
    if isinstance(other, type):
        assert one is other, (ours, numpys)
        return
    assert type(one) is type(other)
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    assert heard == said
    if one.dtype.kind == "f" and entry.sums:
        np.testing.assert_allclose(one, other, rtol=1e-4 if one.dtype == np.float32 else 1e-10, atol=1e-6)
    elif one.dtype.kind == "f" and entry.units:
        finite = np.isfinite(other)
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
        np.testing.assert_array_equal(np.asarray(one)[~finite], np.asarray(other)[~finite])
        np.testing.assert_array_max_ulp(np.asarray(one)[finite], np.asarray(other)[finite], entry.units)
    else:
        np.testing.assert_array_equal(one, other)
        if one.dtype.kind == "f" and entry.name not in ("sort", "sort along an axis"):
            kept = ~np.isnan(other)
            np.testing.assert_array_equal(np.signbit(one)[kept], np.signbit(other)[kept])


@pytest.mark.parametrize("entry", ROWS, ids=lambda entry: entry.name)
def test_results_types_and_warnings_are_numpys(entry):
    generator = np.random.default_rng(0)
    compiled = plumbline.compile(lambda *arrays: entry.run(*arrays), backend="eager", options={"recompile_limit": 100})
    for dtype in DTYPES:
        more = [] if entry.matrices or dtype is not np.float64 else [(5,), (), (0, 3)]
        for shape in [(3, 3), *more]:
            for make in (of_dtype, mild):
                arrays = [make(dtype, generator, shape) for _ in range(entry.count)]
                demand_alike(answer(compiled, arrays), answer(entry.run, arrays), entry)
    turned = [mild(np.float64, generator, (3, 3)).T for _ in range(entry.count)]
    demand_alike(answer(compiled, turned), answer(entry.run, turned), entry)


@pytest.mark.parametrize("entry", ROWS, ids=lambda entry: entry.name)
def test_it_is_one_graph(entry):
    generator = np.random.default_rng(0)
    dtypes = iter((np.float64, np.int64))
    arrays = []
    while not arrays:  # a dtype that NumPy takes, and does not warn of
        dtype = next(dtypes)
        arrays = [mild(dtype, generator, (3, 3)) + 1 for _ in range(entry.count)]
        arrays = arrays if entry.name not in ("arcsin", "arccos") else [arrays[0] / 10]
        arrays = arrays if isinstance(answer(entry.run, arrays)[1], list) else []
    if entry.name in ("//", "%", "floor_divide", "remainder") or entry.name.startswith(("operator //", "operator %")):
        arrays = [array.astype(np.int64) for array in arrays]
    plumbline.compile(lambda *given: entry.run(*given), backend="eager", fullgraph=True)(*arrays)


def test_the_page_is_made_of_the_table():
    from pathlib import Path

    from support.numpy_table import page

    assert (Path(__file__).parents[2] / "docs" / "numpy.md").read_text(encoding="utf-8") == page()
    assert len(ROWS) >= 150
