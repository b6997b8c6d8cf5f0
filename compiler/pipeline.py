"""READ THIS FIRST: one call of a compiled function, from bytecode to kernels, in one page.

    compiled = plumbline.compile(f)      # api.compile -> compile_callable (here)
    compiled(x)                          # the function of the same signature: frontend/units/unit.py

1. The call tries the specialisations of `f` in turn. Each is one generated Python function that checks its guards
   on the arguments and on everything else the capture relied on, and answers MISS if one fails (frontend/guards/).
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
from .base.bundle import Failure, record_failure
from .base.debug_folder import unit_folder
from .base.errors import Unsupported, UserError
from .base.events import RanEagerly, record
from .base.options import Settings
from .base.origin import Origin
from .frontend.capture import capture_unit
from .frontend.units.compiled_module import CompiledModule
from .frontend.units.failure import bytecode_text, source_text
from .frontend.units.unit import Family, Specialisation, Unit, is_suspendable
from .values.reasons import SUSPENDABLE


def make_family(backend: object, settings: Settings, *, fullgraph: bool, dynamic: bool | None) -> Family:
    """Return what the units of one `compile()` call share; settings: as for `resolve_backend`."""
    run, name, is_users = resolve_backend(backend, settings)
    return Family(run, name, settings, _capture, fullgraph=fullgraph, dynamic=dynamic, user_backend=is_users)


def _capture(unit: Unit, args: tuple[object, ...]) -> Specialisation:
    """Capture a unit and, under `debug`, keep every stage of it in a folder."""

    def texts() -> dict[str, tuple[str, str]]:
        code = unit.decoded.code
        parts = {"01_source.py": source_text(code), "02_bytecode.txt": bytecode_text(code)}
        words = ("the function", "its bytecode")
        return {name: (what, text) for (name, text), what in zip(parts.items(), words, strict=True) if text}

    name = f"{unit.name} after a break" if unit.is_resume else unit.name
    with unit_folder(name, texts, unit.family.options):
        return capture_unit(unit, args)


def compile_callable(target: object, family: Family) -> Any:
    """Return the compiled form of a function, method, module or callable object; of a descriptor, one of its kind.

    A generator or coroutine function comes back as it is, with the reason on record.  Raises UserError for classes
    and for what cannot be called; Unsupported for a generator or coroutine of which a full graph is wanted.
    """
    for kind, rule in _KINDS:
        if isinstance(target, kind):
            return rule(target, family)
    call = vars(type(target)).get("__call__")
    if isinstance(call, types.FunctionType) and is_suspendable(call):
        return types.MethodType(_compile_function(call, family), target)
    if callable(target):
        return _compile_function(_calls(target), family)
    raise UserError(f"{type(target).__name__} cannot be compiled", hint="pass a function, a method or an nn.Module")


def _compile_function(function: types.FunctionType, family: Family) -> types.FunctionType:
    try:
        wrapper = _left_alone(function, family) if is_suspendable(function) else family.entry_of(function)
    except (UserError, Unsupported):
        raise
    except Exception as error:
        if family.options.strict:
            raise
        place = f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"
        record_failure(Failure("entry", function.__name__, place, error), family.options)
        return function
    if wrapper is function:
        return wrapper
    functools.update_wrapper(wrapper, function)
    wrapper.__dict__.update(_plumbline_original=function, _plumbline_family=family)
    return wrapper


def _left_alone(function: types.FunctionType, family: Family) -> types.FunctionType:
    """Return a generator or coroutine function as it is; its frames stop and go on where no guard is checked."""
    code = function.__code__
    origin = Origin(code.co_filename, code.co_firstlineno, code.co_name)
    what = f"{function.__qualname__} is a generator or coroutine function"
    if family.fullgraph:
        raise Unsupported(what, where=origin.place(), why=SUSPENDABLE.why, hint=SUSPENDABLE.hint)
    record(RanEagerly(function.__name__, SUSPENDABLE.id, what, SUSPENDABLE.hint, origin))
    return function


def _calls(target: Callable[..., Any]) -> types.FunctionType:
    def call(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    call._plumbline_inline = True  # type: ignore[attr-defined]  # functions take attributes
    assert isinstance(call, types.FunctionType)
    name = getattr(target, "__name__", type(target).__name__)
    call.__code__ = call.__code__.replace(co_name=name, co_qualname=name)  # what the record calls it
    functools.update_wrapper(call, target, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    return call


def _compile_method(target: types.MethodType, family: Family) -> Any:
    owner = target.__self__
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function) and target.__name__ == "apply":
        return _compile_function(_calls(target), family)  # torch's own code of it leaves Python through `super()`
    return types.MethodType(compile_callable(target.__func__, family), target.__self__)


def _compile_partial(target: functools.partial[Any], family: Family) -> functools.partial[Any]:
    return functools.partial(compile_callable(target.func, family), *target.args, **target.keywords)


def _compile_descriptor(target: Any, family: Family) -> Any:
    return type(target)(compile_callable(target.__func__, family))


def _compile_property(target: property, family: Family) -> property:
    if target.fget is None:
        raise UserError("a property without a getter cannot be compiled", hint="pass a property with one")
    return property(compile_callable(target.fget, family), target.fset, target.fdel, target.__doc__)


def _refuse_class(target: type, family: Family) -> Any:
    hint = "compile an instance of it, or decorate the method to be compiled"
    raise UserError(f"the class {target.__name__} cannot be compiled", hint=hint)


def _compile_module(target: torch.nn.Module, family: Family) -> CompiledModule:
    return CompiledModule(target, family.module_entry, family.forward_entry)


# kind of target -> what its compiled form is; other callable objects have their `__call__` compiled
_KINDS: tuple[tuple[type | tuple[type, ...], Callable[[Any, Family], Any]], ...] = (
    (types.FunctionType, _compile_function),
    (torch.nn.Module, _compile_module),
    (types.MethodType, _compile_method),
    (functools.partial, _compile_partial),
    ((staticmethod, classmethod), _compile_descriptor),
    (property, _compile_property),
    (type, _refuse_class),
)
