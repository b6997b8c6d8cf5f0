"""The history of every case as a few kilobytes: a byte a mark and a byte a margin, nights XORed, then gzip.

Most cases do the same every night, so what is stored is nearly all zeros.
"""

import gzip
from collections.abc import Sequence

import numpy

from .page_data import PackedHistory

LEVEL = 6  # of gzip: 9 takes three times as long and saves 2 %

Bytes = numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.uint8]]


def packed_history(names: Sequence[str], marks: Bytes, margins: Bytes) -> PackedHistory:
    """Return the history of `marks[night, case]` and `margins[night, case]`; names as `name_shown` makes them."""
    return PackedHistory(
        names=_gzip("\n".join(names).encode("utf-8", "backslashreplace")),
        marks=_gzip(_moved(marks)),
        margins=_gzip(_moved(margins)),
    )


def name_shown(name: str) -> str:
    """Return the name of a test as the page knows it: in one line, and sound UTF-8."""
    return " ".join(name.encode("utf-8", "backslashreplace").decode("utf-8").splitlines())


def _moved(nights: Bytes) -> bytes:
    """Return each night XORed with the one before; the first one as it is."""
    return numpy.concatenate([nights[:1], nights[1:] ^ nights[:-1]]).tobytes()


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, LEVEL, mtime=0)  # no time: the same history gives the same page
