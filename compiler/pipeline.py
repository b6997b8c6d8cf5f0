"""READ THIS FIRST: one call of a compiled function, from bytecode to kernels, in one page.

    compiled = plumbline.compile(f)      # api.compile -> compile_callable (here)
    compiled(x)                          # the function of the same signature: frontend/unit.py

1. The call tries the specialisations of `f` in turn. Each is one generated Python function that checks its guards
   on the arguments and on everything else the capture relied on, and answers MISS if one fails (frontend/residual.py).
2. On a miss `capture_unit` evaluates the bytecode of `f` on symbolic values (frontend/capture.py, evaluate.py; the
   values in values/). Tensor operations are run on fake tensors and become nodes of a `torch.fx` graph; every fact
   from outside that was looked at becomes a guard; changes of lists, objects, globals and cells are kept to be
   replayed.
3. Where plain Python must run (a branch on data, a print, an unknown callee) the graph ends: the specialisation runs
   it, replays the changes, does the one operation, and goes on in a resume unit, which is dispatched as in 1.
4. The graph goes to the backend (backends.py). `eager` runs it. `aot_eager` and `inductor` trace forward and
   backward to ATen (autograd/compile.py), cut them where the least must be kept, and `inductor` turns each half into
   loops, fuses them and builds C (native.py).
5. The finished function is kept with the unit. What could not be captured or compiled runs eagerly, with the reason
   in the compile record (base/events.py).
"""

import functools
import types
from collections.abc import Callable
from typing import Any

import torch

from .backends import resolve_backend
from .base.errors import UserError
from .base.options import Options
from .frontend.capture import capture_unit
from .frontend.compiled_module import CompiledModule
from .frontend.unit import Family


def make_family(
    backend: object, options: Options, *, fullgraph: bool, dynamic: bool | None
) -> Family:
    """Return what the units of one `compile()` call share."""
    run, name, is_users = resolve_backend(backend, options)
    return Family(run, name, options, capture_unit, fullgraph=fullgraph, dynamic=dynamic, user_backend=is_users)


def compile_callable(target: object, family: Family) -> Any:
    """Return the compiled form of a function, method, module or callable object; raises UserError for others."""
    if isinstance(target, torch.nn.Module):
        return CompiledModule(target, family.module_entry)
    if isinstance(target, types.MethodType):
        return types.MethodType(compile_callable(target.__func__, family), target.__self__)
    if isinstance(target, types.FunctionType):
        return _compile_function(target, family)
    if isinstance(target, functools.partial):
        return functools.partial(compile_callable(target.func, family), *target.args, **target.keywords)
    call = vars(type(target)).get("__call__")
    if isinstance(call, types.FunctionType) and not isinstance(target, type):
        return types.MethodType(_compile_function(call, family), target)
    if callable(target):
        return _compile_function(_calls(target), family)
    raise UserError(f"{type(target).__name__} cannot be compiled", hint="give a function, a method or an nn.Module")


def _compile_function(function: types.FunctionType, family: Family) -> types.FunctionType:
    made = family.wrap(function)
    functools.update_wrapper(made, function)
    made.__dict__.update(_plumbline_original=function, _plumbline_family=family)
    return made


def _calls(target: Callable[..., Any]) -> types.FunctionType:
    def call(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    call._plumbline_inline = True  # type: ignore[attr-defined]  # functions take attributes
    assert isinstance(call, types.FunctionType)
    return call
