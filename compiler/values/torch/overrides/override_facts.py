"""Private names of torch about `__torch_function__`: classes and modes that operations are handed to."""

import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._device import DeviceContext

# `__torch_function__` and its switches: capture asks classes and modes in torch's place.
no_override = torch._C._disabled_torch_function_impl  # what a class has that takes part in nothing
no_dispatch = torch._C._disabled_torch_dispatch_impl  # what a class has under `__torch_dispatch__` that has none
plain_override: Any = inspect.getattr_static(
    torch.Tensor, "__torch_function__"
)  # what subclasses inherit: results are of the subclass
_switch: Any = torch._C.DisableTorchFunctionSubclass
subclass_switch: type = _switch  # a block under which subclasses have no say
subclasses_have_a_say = torch._C._is_torch_function_enabled  # guarded where the program has a subclass
unwrapped_functions = torch.overrides.get_default_nowrap_functions  # those whose results stay as they are
push_function_mode = torch._C._push_on_torch_function_stack
pop_function_mode = torch._C._pop_torch_function_stack
make_subclass = torch.Tensor._make_subclass  # what constructors of subclasses call


class _ModesAside(threading.local):
    """The modes for functions that a thread has put aside while code that has asked them already runs."""

    modes: tuple[object, ...] = ()


MODES_ASIDE = _ModesAside()


def only_foreign_modes() -> bool:
    """Return whether every mode for functions that is active is the program's, and none a device block."""
    depth = torch._C._len_torch_function_stack()
    return depth > 0 and all(type(torch._C._get_function_stack_at(n)) is not DeviceContext for n in range(depth))


@contextmanager
def modes_put_aside() -> Iterator[None]:
    """Take the modes for functions off the stack for the duration of a block; the outermost is the first of them."""
    before = MODES_ASIDE.modes
    taken = [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())]
    MODES_ASIDE.modes = tuple(reversed(taken))
    try:
        yield
    finally:
        MODES_ASIDE.modes = before
        for mode in reversed(taken):
            torch._C._push_on_torch_function_stack(mode)
