"""Whether the stack of a thread has room for the frames of a capture, or is left to the program."""

import sys

NEEDED = 300
"""Frames that are kept free: captures and backends take about 120, and their first calls import."""


def has_room() -> bool:
    """Return whether Python's recursion limit is far enough away.

    A program that recurses deeper runs plainly from there: an error of ours in the middle would not be the program's,
    and every frame of ours is one less for it.
    """
    try:
        sys._getframe(max(sys.getrecursionlimit() - NEEDED, 0))
    except ValueError:
        return True
    return False
