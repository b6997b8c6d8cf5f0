"""The packed history is the history, and small."""

import gzip

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.reports.dashboard.packing import name_shown, packed_history


def opened(data: bytes, nights: int) -> numpy.ndarray:
    moved = numpy.frombuffer(gzip.decompress(data), dtype=numpy.uint8).reshape(nights, -1)
    return numpy.bitwise_xor.accumulate(moved, axis=0)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(0, 20), st.integers(0, 2**32 - 1), st.lists(st.text(), max_size=5))
def test_what_is_packed_comes_out(nights, cases, seed, names):
    draw = numpy.random.default_rng(seed)
    marks, margins = (draw.integers(0, 256, (nights, cases), dtype=numpy.uint8) for _ in range(2))
    shown = [name_shown(name) for name in names]
    packed = packed_history(shown, marks, margins)
    assert (opened(packed.marks, nights) == marks).all()
    assert (opened(packed.margins, nights) == margins).all()
    text = gzip.decompress(packed.names).decode("utf-8")
    assert (text.split("\n") if shown else []) == shown


def test_quiet_nights_cost_next_to_nothing():
    marks = numpy.tile(numpy.arange(12_000, dtype=numpy.uint8) % 7, (60, 1))
    packed = packed_history([], marks, marks)
    assert len(packed.marks) < 3_000
