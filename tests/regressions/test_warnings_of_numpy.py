"""NumPy's warnings about floating-point arithmetic vanished where the arithmetic was traced: torch is silent."""

import warnings

import numpy as np
import pytest

import plumbline


def in_place(x):
    x += 1e308
    x *= 2
    return x.copy()


def hidden_behind_a_choice(x):
    return np.clip(1 / x, 0.0, 1.0)


def one_array_twice(x):
    return np.sqrt(x) * np.sqrt(x) + x - x


NAN, INF = float("nan"), float("inf")
PROGRAMS = {
    "square root": (np.sqrt, (-1.0, 4.0)),
    "square root of nan": (np.sqrt, (NAN, INF)),
    "division by zero": (lambda x: 1 / x, (0.0, 1.0)),
    "zero by zero": (lambda x: x / x, (0.0, 1.0)),
    "product": (lambda x: x * x, (1e200, 1.0)),
    "square": (np.square, (1e200, 1.0)),
    "sum": (lambda x: x + x, (1.7e308, 1.0)),
    "difference of infinities": (lambda x: x - x, (INF, 1.0)),
    "nan and infinity": (lambda x: x * 2 + INF, (NAN, 1.0)),
    "nan as a number": (lambda x: x + NAN, (0.0, 1.0)),
    "zero times infinity": (lambda x: x * INF, (0.0, 1.0)),
    "nothing": (lambda x: x * 2 + 1, (2.0, 1.0)),
    "hidden": (hidden_behind_a_choice, (0.0, 4.0)),
    "in place": (in_place, (1.0, 2.0)),
    "several": (one_array_twice, (-1.0, INF)),
}


def outcome(function, numbers, mode):
    """Return the result, its error or what is written, with the warnings."""
    x = np.array(numbers)
    with (
        warnings.catch_warnings(record=True) as seen,
        np.errstate(all="warn" if mode == "error" else mode, under="ignore"),
    ):
        warnings.simplefilter("error" if mode == "error" else "always")
        try:
            result = repr(function(x))
        except (RuntimeWarning, FloatingPointError) as error:
            result = repr(error)
    return result, repr(x), sorted(str(warning.message) for warning in seen)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("mode", ["warn", "error", "raise", "ignore"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_warnings(name, mode, backend, monkeypatch):
    monkeypatch.setenv("PLUMBLINE_STRICT", "1")
    function, numbers = PROGRAMS[name]
    run = plumbline.compile(function, backend=backend)
    for values in (numbers, (2.0, 3.0), numbers):
        assert outcome(run, values, mode) == outcome(function, values, mode)


def test_quiet_arithmetic_is_one_graph():
    report = plumbline.explain(lambda x: x * 2 + x)(np.array([1.0, NAN, INF]))
    assert report.graph_count == 1
    assert report.graph_break_count == 0
