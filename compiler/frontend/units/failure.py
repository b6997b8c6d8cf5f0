"""An error of ours while a function is captured or its compiled code runs: what a bundle tells about it."""

import dis
import inspect
import io
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import fx

from ...base.bundle import REPRO, Failure, record_failure
from ...base.options import Options
from ...graph.graph_printing import graph_text
from ...graph.repro_scripts import function_script, graph_script, graph_so_far, stand_in
from ...values.guard import Guard, GuardKind
from ..guards.guard_rules import guard_words
from .unit import Unit, parameter_names


def report_failure(
    stage: str,
    unit: Unit,
    error: BaseException,
    args: Sequence[object] = (),
    guards: Sequence[Guard] = (),
    graph: fx.Graph | None = None,
    examples: Sequence[object] = (),
) -> None:
    """Put an error of ours on record, with a bundle of what was known when it happened.

    args: the arguments of the unit; graph: as far as it was built, with its example inputs if they are known.
    """
    options = unit.family.options
    title = f"{unit.name}: {type(error).__name__} in {stage}".replace("\\", "/").replace('"', "'")
    texts: dict[str, Callable[[], str | None]] = {
        "function.py": lambda: source_text(unit.decoded.code),
        "bytecode.txt": lambda: bytecode_text(unit.decoded.code),
        "guards.txt": lambda: "\n".join(_guard_words(guard, options) for guard in guards),
        "graph.py": lambda: _graph(graph),
        "inputs.txt": lambda: "\n".join(_inputs(unit, args, options)),
        REPRO: lambda: _by_function(unit, args, title, options) or _by_graph(unit, graph, examples, title, options),
    }
    files = {name: text for name, make in texts.items() if (text := _attempt(make))}
    record_failure(Failure(stage, unit.name, unit.origin().place(), error, files), options)


def _attempt(make: Callable[[], str | None]) -> str | None:
    """Return a text of the bundle; a text that cannot be made is left out, and never an error of its own."""
    try:
        return make()
    except Exception:
        return None


def source_text(code: types.CodeType) -> str:
    """Return the user's source of a code object; empty if it is not to be had."""
    try:
        lines, first = inspect.getsourcelines(code)
    except OSError:
        return ""
    return f"# {code.co_filename}:{first}\n{''.join(lines)}"


def bytecode_text(code: types.CodeType) -> str:
    """Return the disassembly of a code object."""
    out = io.StringIO()
    dis.dis(code, file=out)
    return out.getvalue()


def _guard_words(guard: Guard, options: Options) -> str:
    """Return a guard in words; what a text says is the user's own business."""
    if options.bundle_inputs or not isinstance(guard.expected, str | bytes) or guard.kind is not GuardKind.EQUALS:
        return guard_words(guard)
    place = guard.source.words() if guard.source is not None else ""
    return f"{place} equals a text of {len(guard.expected)} letters"


def _graph(graph: fx.Graph | None) -> str | None:
    if graph is None:
        return None
    printed = graph_text(graph_so_far(graph))
    bound = "".join(f"# {name}: {value!r}\n" for name, value in printed.scope.items())
    return f"import torch\n{bound}{printed.text}"


def _inputs(unit: Unit, args: Sequence[object], options: Options) -> list[str]:
    return [f"{name}: {_kind(value, options)}" for name, value in zip(unit.shown, args, strict=False)]


def _kind(value: object, options: Options) -> str:
    if isinstance(value, torch.Tensor):
        kind = f"{type(value).__name__} {tuple(value.shape)} strides {_strides(value)} {value.dtype} on {value.device}"
        kind += f", requires grad {value.requires_grad}"
        return f"{kind}\n{value!r}" if options.bundle_inputs else kind
    if options.bundle_inputs:
        return repr(value)
    return stand_in(value) or f"{type(value).__module__}.{type(value).__qualname__}"


def _strides(value: torch.Tensor) -> object:
    return value.stride() if value.layout is torch.strided else value.layout


def _by_function(unit: Unit, args: Sequence[object], title: str, options: Options) -> str | None:
    """Return a script that imports the user's function and calls it; None if it cannot be found by its name."""
    code = unit.decoded.code
    owner, name = unit.namespace, code.co_qualname
    function = owner.get(name)
    plain = inspect.unwrap(function) if isinstance(function, types.FunctionType) else None
    if unit.is_resume or code.co_freevars or plain is None or getattr(plain, "__code__", None) is not code:
        return None
    texts = _call_arguments(code, args)
    find = _import_text(str(owner.get("__name__")), Path(code.co_filename), name)
    if texts is None or find is None:
        return None
    return function_script(find, texts, title, unit.family.backend_name, options)


def _call_arguments(code: types.CodeType, args: Sequence[object]) -> list[str] | None:
    """Return the arguments of a call as text, in the order of the code's slots; None if one has no stand-in."""
    texts = [stand_in(value) for value in args]
    if None in texts or len(texts) != len(parameter_names(code)):
        return None
    positional, keyword_only = code.co_argcount, code.co_kwonlyargcount
    slot = positional + keyword_only
    arguments = [str(text) for text in texts[:positional]]
    if code.co_flags & inspect.CO_VARARGS:
        arguments.append(f"*{texts[slot]}")
        slot += 1
    named = slice(positional, positional + keyword_only)
    arguments += [f"{name}={text}" for name, text in zip(code.co_varnames[named], texts[named], strict=True)]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        arguments.append(f"**{texts[slot]}")
    return arguments


def _import_text(module: str, file: Path, name: str, function: str = "function") -> str | None:
    """Return lines that load the user's module and give the function of this name another one, `function`."""
    if not file.is_file():
        return None
    if module == "__main__" or module not in sys.modules:
        return (
            "import importlib.util\n\n"
            f'specification = importlib.util.spec_from_file_location("reproduced", {str(file.resolve())!r})\n'
            "module = importlib.util.module_from_spec(specification)\n"
            "specification.loader.exec_module(module)\n"
            f"{function} = module.{name}"
        )
    root = file.resolve().parents[module.count(".") + (file.name == "__init__.py")]
    return (
        "import importlib\nimport sys\n\n"
        f"sys.path.insert(0, {str(root)!r})\n"
        f"{function} = importlib.import_module({module!r}).{name}"
    )


def _by_graph(
    unit: Unit, graph: fx.Graph | None, examples: Sequence[object], title: str, options: Options
) -> str | None:
    if graph is None or not any(node.op.startswith("call_") for node in graph.nodes):
        return None
    backend = unit.family.backend if unit.family.user_backend else None
    find = _backend_text(backend) if backend is not None else ""
    return graph_script(graph_so_far(graph), examples, title, unit.family.backend_name, options, find)


def _backend_text(backend: Callable[..., object]) -> str:
    """Return lines that name a backend of the user's: found by its name, or a place to put it."""
    code = getattr(backend, "__code__", None)
    if code is not None and backend.__qualname__.isidentifier():
        found = _import_text(backend.__module__, Path(code.co_filename), backend.__qualname__, "backend")
        if found is not None:
            return found
    return "backend = ...  # put your backend here"
