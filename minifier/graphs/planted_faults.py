"""Lowerings that a test or demo replaced, as statements that replace them again in a script."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable

from plumbline.compiler.base.errors import Unsupported
from plumbline.compiler.lowering.registry import LOWERINGS, replaced_lowerings

from ..import_path import import_path


def planted_faults() -> str:
    """Return statements for the body of a function, empty when nothing is replaced here.

    They leave the replacements in force; what they enter stays alive as attributes of the function `configure`.
    Raises Unsupported for a lowering whose source or names cannot be found.
    """
    lines = []
    for number, (operator, lowering) in enumerate(replaced_lowerings().items()):
        name, source = _named(lowering, number)
        lines += source
        lines.append(f"configure.fault_{number} = replace_lowering(torch.ops.{operator}, {name})")
        lines.append(f"configure.fault_{number}.__enter__()")
    return "\n".join(["from plumbline.testing import lowering_of, replace_lowering", *lines]) if lines else ""


def _named(lowering: Callable[..., object], number: int) -> tuple[str, list[str]]:
    """Return an expression for a lowering, and the statements that it needs."""
    own = _own_lowering(lowering)
    if own:
        return own, []
    path = import_path(lowering)
    if path is not None:
        return path[1], [f"from {path[0]} import {path[1].split('.')[0]}"]
    return _from_source(lowering, f"fault_{number}")


def _own_lowering(value: object) -> str:
    """Return an expression for a lowering of ours, empty for anything else."""
    known = (operator for operator, lowering in LOWERINGS.items() if lowering is value)
    return next((f"lowering_of(torch.ops.{operator})" for operator in known), "")


def _from_source(function: Callable[..., object], name: str) -> tuple[str, list[str]]:
    """Write out a function of a script or test, with imports for the names it reads."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
        definition = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.Lambda))
    except (OSError, TypeError, SyntaxError, StopIteration) as error:
        raise _unwritable(function, str(error)) from None
    variables = inspect.getclosurevars(function)
    read = {**variables.globals, **variables.nonlocals}
    # pytest's rewritten asserts read names that are not identifiers; the source text does not.
    needed = [_binding(function, key, value) for key, value in read.items() if key.isidentifier()]
    if isinstance(definition, ast.Lambda):
        body = [*needed, f"return {ast.unparse(definition)}"]
    else:
        body = [*needed, ast.unparse(definition), f"return {definition.name}"]
    # A function of its own, so that its names do not hide those of the script.
    return f"{name}()", [f"def {name}():", textwrap.indent("\n".join(body), "    ")]


def _binding(function: Callable[..., object], name: str, value: object) -> str:
    """Return a statement that binds a name as the function sees it."""
    if inspect.ismodule(value):
        known = value.__name__ in sys.modules  # torch.ops.aten is a module that no import finds
        return f"import {value.__name__} as {name}" if known else f"{name} = {value.__name__}"
    if isinstance(value, (bool, int, float, str, type(None))):
        return f"{name} = {value!r}"
    own = _own_lowering(value) if callable(value) else ""
    if own:
        return f"{name} = {own}"
    path = import_path(value)
    if path is None:
        text = str(value)
        if text.startswith("torch.ops.") or type(value).__module__ == "torch._ops":
            return f"{name} = {text if text.startswith('torch.ops.') else 'torch.ops.' + text}"
        raise _unwritable(function, f"it uses {name}")
    first, *rest = path[1].split(".")
    return f"from {path[0]} import {first} as {name}" + (f"\n{name} = {name}.{'.'.join(rest)}" if rest else "")


def _unwritable(function: Callable[..., object], why: str) -> Unsupported:
    what = f"the planted lowering {getattr(function, '__name__', function)} cannot be written into a script"
    return Unsupported(what, why=why, hint="put it into a module that can be imported")
