"""Rules of the opcodes that import: what is loaded is read from `sys.modules`, as any other dictionary is."""

import builtins
import importlib.util
import sys
import types

from ...bytecode.instruction import Instruction
from ...values.constant import Constant, Known
from ...values.python.containers.mappings import DictValue
from ...values.python.objects.exceptions import attribute_of
from ...values.reasons import UNSUPPORTED_OPERATION, Break
from ...values.source import Injected, Item
from ...values.value import CaptureContext, Raised, Value
from ..context.frame import FrameState
from .opcode_table import opcode


@opcode("IMPORT_NAME")
def do_IMPORT_NAME(frame: FrameState, instruction: Instruction) -> None:
    """Import a module that is loaded already; loading one breaks."""
    level, names = (value.constant() for value in frame.stack[-2:])
    name = instruction.value
    assert isinstance(level, int)
    assert isinstance(name, str)
    _demand_own_import(frame.ctx)
    package = str(frame.namespace.get("__package__") or "")
    full = importlib.util.resolve_name("." * level + name, package) if level else name
    module = _loaded(frame.ctx, full)
    if names:
        _demand_submodules(frame.ctx, module, full, names)
    else:  # `import a.b` binds a
        rest = name.partition(".")[2]
        module = _loaded(frame.ctx, full.removesuffix(f".{rest}")) if rest else module
    frame.pop_many(2)
    frame.push(module)


@opcode("IMPORT_FROM")
def do_IMPORT_FROM(frame: FrameState, instruction: Instruction) -> None:
    """Push an attribute of the imported module, or the submodule of that name."""
    module, name = frame.stack[-1], instruction.value
    assert isinstance(name, str)
    found = _attribute(frame.ctx, module, name)
    if found is not None:
        frame.push(found)
        return
    own = getattr(module.constant(), "__name__", "")
    loaded = _modules(frame.ctx).find(frame.ctx, Constant(f"{own}.{name}"))
    if loaded is None:
        error = _refusal(module.constant(), name)
        frame.ctx.throw(type(error), *error.args, name=error.name, path=error.path)
    frame.push(loaded)


def _modules(ctx: CaptureContext) -> DictValue:
    modules = ctx.wrap(sys.modules, Injected(sys.modules))
    assert isinstance(modules, DictValue)
    return modules


def _demand_own_import(ctx: CaptureContext) -> None:
    """Break where somebody has replaced `builtins.__import__`."""
    found = ctx.wrap(vars(builtins)["__import__"], Item(Injected(vars(builtins)), "__import__"))
    if not isinstance(found, Known) or type(found.constant()) is not types.BuiltinFunctionType:
        raise Break(UNSUPPORTED_OPERATION, "an import by a function that replaces `builtins.__import__`")


def _loaded(ctx: CaptureContext, name: str) -> Value:
    """Return the module under a name, which is guarded; None there says that it cannot be imported."""
    module = _modules(ctx).find(ctx, Constant(name))
    if module is None or (module.is_constant() and module.constant() is None):
        raise Break(UNSUPPORTED_OPERATION, f"import of {name}, which is not loaded yet")
    return module


def _demand_submodules(ctx: CaptureContext, module: Value, name: str, wanted: object) -> None:
    """Break where `from package import wanted` would load a submodule."""
    assert isinstance(wanted, tuple)
    for one in wanted if _attribute(ctx, module, "__path__") is not None else ():
        if _attribute(ctx, module, one) is None:
            _loaded(ctx, f"{name}.{one}")


def _attribute(ctx: CaptureContext, module: Value, name: str) -> Value | None:
    """Return an attribute of what is imported, None where that raises AttributeError."""
    try:
        return attribute_of(ctx, module, name)
    except Raised as raised:
        if not issubclass(raised.value.python_type(), AttributeError):
            raise
    return None


def _refusal(module: object, name: str) -> ImportError:
    """Return Python's own error for a name that a module lacks."""
    try:
        exec(f"from module import {name}", {"__builtins__": {"__import__": lambda *_: module}})
    except ImportError as error:
        return error.with_traceback(None)  # it holds this frame, and so all the callers'
    raise AssertionError(f"{module} has {name}")
