"""Torch's state around a capture: put back where the capture is interrupted."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ...base.torch_facts import ModeStacks, dispatch_keys_kept, set_default_dtype
from .autocast import autocast_depth, autocast_state, put_autocast


@contextmanager
def state_kept_when_interrupted() -> Iterator[None]:
    """Run the block; if anything is raised in it, put modes, autocast and the default dtype back as they were.

    So are the dispatch keys of the thread: guards of torch's that an interrupt leaves entered end in any order, and the
    last one sets what was right inside. Autograd recorded nothing after that.
    """
    with dispatch_keys_kept():
        stacks, dtype = ModeStacks(), torch.get_default_dtype()
        autocast, depth = autocast_state(), autocast_depth()
        try:
            yield
        except BaseException as error:
            if not isinstance(error, Exception):
                _finish_blocks(error)
            stacks.unwind()
            if (autocast_state(), autocast_depth()) != (autocast, depth):
                put_autocast(autocast, depth)
            if torch.get_default_dtype() is not dtype:
                set_default_dtype(dtype)
            raise


def _finish_blocks(error: BaseException) -> None:
    """Drop what the frames below hold, so that a context manager that was entered and has no block ends now.

    Its generator would end when the traceback is dropped, and set the state that was right inside the capture.
    """
    interrupted: BaseException | None = error
    while interrupted is not None:
        traceback.clear_frames(interrupted.__traceback__)
        interrupted = interrupted.__context__
