"""Strips: a night of one column as three byte strings, one byte a test, so that a map of years is a few reads.

The byte at position n belongs to the test with number n + 1.  They are stored compressed: a night of 2,000 tests
under one column takes about 1 kB.
"""

import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

ABSENT = ord(" ")
"""The mark of a test that did not run."""

_LOWEST, _DECADES = 1e-6, 9.0  # margins from 1e-6 to 1e3, seconds from 1 µs to 1,000 s


@dataclass(frozen=True, slots=True)
class Strip:
    """One night of one column.

    run: number of the run.  marks: letters as in verdict_marks; upper-case "Y" is a failure that a retry cleared.
    margins, seconds: coded values, see `value_of_byte`; seconds are of compiling.
    """

    run: int
    column: str
    marks: bytes
    margins: bytes
    seconds: bytes

    def mark(self, test: int) -> str:
        """Return the letter of the test with this number, a space when it did not run."""
        return chr(self.marks[test - 1]) if test <= len(self.marks) else " "

    def margin(self, test: int) -> float:
        """Return the margin of the test with this number, to about 4 %; 0.0 when it did not run."""
        return value_of_byte(self.margins[test - 1]) if test <= len(self.margins) else 0.0


def byte_of_value(value: float) -> int:
    """Return a value of 0 or more as one byte: 0 is 0, 1 to 254 go up by 8.5 % each, 255 is inf or nan."""
    if math.isnan(value) or math.isinf(value):
        return 255
    if value <= 0.0:
        return 0
    step = math.log10(value / _LOWEST) / _DECADES * 253
    return 1 + min(max(round(step), 0), 253)


def value_of_byte(byte: int) -> float:
    """Return the value that a byte stands for."""
    if byte == 255:
        return math.inf
    return 0.0 if byte == 0 else float(_LOWEST * 10 ** ((byte - 1) / 253 * _DECADES))


def packed(values: Iterable[tuple[int, int]], *, absent: int) -> bytes:
    """Return (test number, byte) pairs as one compressed strip."""
    pairs = list(values)
    strip = bytearray([absent]) * max((test for test, _ in pairs), default=0)
    for test, byte in pairs:
        strip[test - 1] = byte
    return zlib.compress(bytes(strip), 6)


def unpacked(data: bytes) -> bytes:
    """Return a compressed strip as bytes, one a test."""
    return zlib.decompress(data)
