"""The history of every case as a few kilobytes: a byte a mark and a byte a margin, nights XORed, then gzip.

Most cases do the same every night, so what is stored is nearly all zeros.
"""

import gzip
import math
from collections.abc import Sequence

import numpy

from .page_data import PackedHistory

STEPS = 20  # steps of a byte a decade: a margin is kept to 6 %
ONE = 121  # the byte of margin 1, the limit: 1e-6 to 5e6 can be said
NO_MARGIN, LARGEST = 0, 255
LEVEL = 6  # of gzip: 9 takes three times as long and saves 2 %

Bytes = numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.uint8]]


def margin_byte(margin: float) -> int:
    """Return a margin as one byte: 0 for bitwise equal, 255 for inf, nan and what is larger than can be said."""
    if margin == 0:
        return NO_MARGIN
    if not math.isfinite(margin):
        return LARGEST
    return min(max(round(STEPS * math.log10(margin)) + ONE, 1), LARGEST)


def margin_of(byte: int) -> float:
    """Return the margin that a byte stands for."""
    return math.inf if byte == LARGEST else 10 ** ((byte - ONE) / STEPS) if byte else 0.0


def packed(names: Sequence[str], marks: Bytes, margins: Bytes) -> PackedHistory:
    """Return the history of `marks[night, case]` and `margins[night, case]`; a line break in a name becomes a space."""
    lines = "\n".join(" ".join(name.splitlines()) for name in names)
    return PackedHistory(
        names=_gzip(lines.encode("utf-8", "backslashreplace")),
        marks=_gzip(_moved(marks)),
        margins=_gzip(_moved(margins)),
    )


def _moved(nights: Bytes) -> bytes:
    """Return each night XORed with the one before; the first one as it is."""
    return numpy.concatenate([nights[:1], nights[1:] ^ nights[:-1]]).tobytes()


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, LEVEL, mtime=0)  # no time: the same history gives the same page
