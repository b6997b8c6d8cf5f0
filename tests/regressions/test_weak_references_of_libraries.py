"""Weak references that torch holds to modules, as stock torch.compile does, end no graph."""

import gc
import weakref

import torch

from plumbline.compiler.base.events import Captured, recording
from support.programs import compiled


def step(module, x):
    y = module(x)
    module = None
    return y + 1


def graphs(module):
    x = torch.ones(2, 2)
    with recording() as events:
        torch.testing.assert_close(compiled(step)(module, x), step(module, x))
    return sum(isinstance(event, Captured) for event in events)


def forgotten(reference):
    del reference


def test_modules_that_torch_refers_to():
    module, table = torch.nn.Linear(2, 2), weakref.WeakKeyDictionary()
    table[module] = 1
    forgotten.__module__ = "torch.anything"
    kept = weakref.ref(module, forgotten)
    assert graphs(module) == 1
    del kept
    gc.collect()


def test_modules_that_the_program_refers_to():
    module = torch.nn.Linear(2, 2)
    kept = weakref.ref(module)
    assert graphs(module) == 2
    del kept
