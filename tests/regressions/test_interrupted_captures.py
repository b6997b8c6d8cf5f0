"""Ctrl-C while a function was captured could leave the fake mode on: everything plain torch did was then wrong."""

import contextlib
import os
import sys
import traceback

import pytest
import torch

import plumbline
from plumbline.compiler.base.torch_facts import FakeTensorMode, ModeStacks
from plumbline.compiler.frontend.context.mode_changes import ModeRecord

X = torch.ones(3)


def body(x):
    y = x.sin()
    with torch.no_grad():
        y = y + x.reshape(3, 1).sum()
    with torch.autocast("cpu"):
        return y * 2


def state():
    stacks = vars(ModeStacks())
    autocast = torch.is_autocast_enabled("cpu"), torch.autocast_increment_nesting(), torch.autocast_decrement_nesting()
    recorded = (torch.ones(1, requires_grad=True) + 1).requires_grad
    return stacks, autocast, torch.get_default_dtype(), type(torch.ones(1) + 1), recorded


class Interrupt:
    """Raises KeyboardInterrupt when a mode is entered or left for the n-th time, at one of the lines of it."""

    def __init__(self, at):
        self.at, self.seen = at, 0

    def trace(self, frame, event, argument):
        watched = frame.f_code.co_name in ("__enter__", "__exit__", "_push_mode", "_pop_mode", "_fake_run")
        return self.line if watched and event == "call" else None

    def line(self, frame, event, argument):
        if event in ("line", "return"):
            self.seen += 1
            if self.seen == self.at:
                raise KeyboardInterrupt
        return self.line


def interrupted(at, backend):
    """Return how many places there were; the call is interrupted at one of them, if there are so many."""
    plumbline.reset()  # else it would be captured by the first call only
    run, interrupt = plumbline.compile(body, backend=backend), Interrupt(at)
    before = sys.gettrace()
    sys.settrace(interrupt.trace)
    try:
        run(X)
    finally:
        sys.settrace(before)
    return interrupt.seen


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_interrupt_anywhere(backend):
    """In a child: if state is left behind, the tests after this one would run in it."""
    child = os.fork()
    if not child:
        try:
            _interrupt_everywhere(backend)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _interrupt_everywhere(backend):
    before = state()
    interrupted(-1, backend)  # later calls import nothing
    places = interrupted(-1, backend)
    assert places > 100
    stopped = 0
    for at in range(1, places, max(1, places // 150)):
        try:
            interrupted(at, backend)
        except KeyboardInterrupt:
            stopped += 1
        assert state() == before, at
    assert stopped > 100
    assert torch.equal(plumbline.compile(body, backend=backend)(X), body(X))


def test_an_interrupt_behind_the_entered_mode(monkeypatch):
    enter = FakeTensorMode.__enter__

    def entered(mode):
        enter(mode)
        raise KeyboardInterrupt

    before = state()
    run = plumbline.compile(body, backend="eager")
    with monkeypatch.context() as patch:
        patch.setattr(FakeTensorMode, "__enter__", entered)
        with pytest.raises(KeyboardInterrupt):
            run(X)
    assert state() == before


def test_an_interrupt_behind_an_entered_block_that_sets_the_grad_mode(monkeypatch):
    """The block's generator ended when the traceback was dropped, and set the mode of the middle of the capture."""
    original = ModeRecord.state_at_entry

    class Entered:
        def __init__(self, record):
            self.block = original(record)

        def __enter__(self):
            self.block.__enter__()
            raise KeyboardInterrupt

        def __exit__(self, *error):
            pass

    def leaving_without_grad(x):
        y = x * 2
        torch.set_grad_enabled(False)
        return y

    before = state()
    run = plumbline.compile(leaving_without_grad, backend="eager")
    with monkeypatch.context() as patch:
        patch.setattr(ModeRecord, "state_at_entry", lambda record: Entered(record))
        with contextlib.suppress(KeyboardInterrupt):
            run(X)
    assert state() == before
