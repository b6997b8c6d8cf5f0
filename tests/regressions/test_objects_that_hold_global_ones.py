"""A callable that a frame lets go of may reach a logger with handlers, which live on: its end is no reason to break."""

import logging
import weakref

import torch

import plumbline


class Handler(logging.Handler):
    """A handler, to which the logging module holds a weak reference."""


LOGGER = logging.getLogger("plumbline.tests.held")
HANDLER = Handler()
LOGGER.addHandler(HANDLER)
WATCH = weakref.ref(HANDLER)


class Mask:
    """Holds the logger, and is held by nobody else than the call."""

    def __init__(self):
        self.logger = LOGGER

    def __call__(self, x):
        return x * 2


def apply(mask, x):
    result = mask(x)
    del mask
    return result + 0


def test_the_graph_is_whole():
    compiled = plumbline.compile(apply, backend="eager", fullgraph=True)
    assert torch.equal(compiled(Mask(), torch.ones(2)), torch.full((2,), 2.0))
