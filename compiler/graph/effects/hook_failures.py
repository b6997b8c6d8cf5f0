"""raised_by_tensor_hook: whether an error comes from the caller's saved-tensor hooks, and not from the graph.

Autograd calls the hooks while a graph runs. Activation checkpointing ends its second forward with an exception from
one: that is the caller's own, and running the graph again would call the hooks twice.
"""

import functools
from types import CodeType

from ...base.torch_facts import tensor_hooks


def raised_by_tensor_hook(error: BaseException) -> bool:
    """Return whether the error was raised in one of the saved-tensor hooks that are in force.

    Hooks written in C leave no trace.
    """
    codes = {code for hook in tensor_hooks() if (code := _code_of(hook)) is not None}
    trace = error.__traceback__ if codes else None
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def _code_of(hook: object) -> CodeType | None:
    """Return the code of a callable: of a function or method, of what is in a partial, of the method `__call__`."""
    while isinstance(hook, functools.partial):
        hook = hook.func
    hook = getattr(hook, "__func__", hook)
    code = getattr(hook, "__code__", None)
    if code is None and callable(hook):
        code = getattr(type(hook).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None
