"""DistributedDataParallel around a compiled module: the wrapper runs in plain Python, what it wraps is compiled.

The wrapper's forward talks to the other processes, writes to its own state and reads the clock: nothing of it could be
part of a graph. So a view of it, with the same state, gives the compiled form of the module that it wraps.
"""

from collections.abc import Callable
from typing import Any

import torch

from .compiled_module import CompiledModule

Distributed = torch.nn.parallel.DistributedDataParallel


def view_with_compiled_module(
    wrapper: Distributed, entry: Callable[[torch.nn.Module], Callable[..., Any]]
) -> Distributed:
    """Return an object that is the wrapper in everything but `module`, which is compiled.

    entry: what a compiled module runs.  The view shares the wrapper's `__dict__`; it must live as long as the wrapper,
    which keeps weak references to whoever ran its forward.
    """
    compiled: list[CompiledModule] = []

    def module(self: Distributed) -> torch.nn.Module:
        inner = self._modules["module"]
        assert inner is not None
        if isinstance(inner, CompiledModule):
            return inner
        if not compiled or compiled[0]._orig_mod is not inner:
            compiled[:] = [CompiledModule(inner, entry)]
        return compiled[0]

    kind = type(type(wrapper).__name__, (type(wrapper),), {"module": property(module), "__slots__": ()})
    view: Distributed = object.__new__(kind)
    object.__setattr__(view, "__dict__", wrapper.__dict__)
    return view
