"""Threads that compile at the same time: none of them may leave its way of noting warnings behind."""

import threading
import warnings

import torch

from plumbline.compiler.base.noted_warnings import noted_warnings
from plumbline.compiler.frontend.context.repeated_warnings import operation_warnings


class Frames:
    """No frames."""

    stack = ()

    def here(self):
        """Return no line."""


def interleaved(first, second):
    """Enter the first block, then the second in another thread, and leave them in the order they were entered."""
    entered, left = threading.Event(), threading.Event()

    def other():
        with second:
            entered.set()
            left.wait(10)

    thread = threading.Thread(target=other)
    with first:
        thread.start()
        assert entered.wait(10)
    left.set()
    thread.join()


def test_the_functions_of_warnings_are_put_back():
    before = warnings.warn, warnings.showwarning, list(warnings.filters)
    for block in (lambda: operation_warnings([], Frames()), lambda: noted_warnings([])):
        interleaved(block(), block())
    assert (warnings.warn, warnings.showwarning, list(warnings.filters)) == before


def test_each_thread_notes_its_own():
    mine, others = [], []
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with noted_warnings(mine):
            warnings.warn("mine", stacklevel=1)
            thread = threading.Thread(target=lambda: warnings.warn("shown", stacklevel=1))
            thread.start()
            thread.join()
        with operation_warnings(others, Frames()):
            torch.nn.functional.mse_loss(torch.ones(2), torch.ones(2, 1))
    assert [str(warning) for warning in mine] == ["UserWarning: mine"]
    assert [str(warning.message) for warning in shown] == ["shown"]
    assert len(others) == 1
