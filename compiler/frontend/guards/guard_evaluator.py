"""The evaluator of guard tables: built once per machine from `guard_evaluator.c`, or nothing without a C compiler."""

import ctypes
import struct
import sysconfig
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from ...base.errors import BuildError
from ...base.events import FellBack, record
from ...base.options import Options
from ...runtime.c_build import build
from .guard_table import GuardTable
from .rule import GUARD_ERRORS
from .steps import LAST_FETCH, StepOp
from .tensor_layout import tensor_layout

_SOURCE = Path(__file__).with_name("guard_evaluator.c")


def native_evaluator(
    table: GuardTable,
    passed: tuple[int, ...],
    body: Callable[..., object],
    miss: object,
    options: Options,
) -> Callable[..., object] | None:
    """Return a callable of the table's arguments: body(*slots in `passed`) where every step holds, else `miss`.

    None where the evaluator cannot be built (the reason is on record).
    """
    kind = evaluator_type(options)
    if kind is None:
        return None
    rows = tuple(step.row() for step in table.steps)
    evaluator: Callable[..., object] = kind(table.arguments, table.slots, rows, passed, body, miss, GUARD_ERRORS)
    return evaluator


def evaluator_type(options: Options) -> Any:
    """Return the type `Evaluator`, None where it cannot be built; found once per process."""
    return _evaluator_type(options.compiler, options.disk_cache, options.cache_directory)


@lru_cache(maxsize=8)
def _evaluator_type(compiler: str, disk_cache: bool, cache_directory: str) -> Any:
    header = Path(sysconfig.get_path("include"), "Python.h")
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))  # the C relies on the interpreter lock
    if free_threaded or not header.exists():
        why = "this Python has no interpreter lock" if free_threaded else f"there is no {header}"
        record(FellBack("guards in C", f"{why}: guards are checked in Python"))
        return None
    options = Options(compiler=compiler, disk_cache=disk_cache, cache_directory=cache_directory)
    try:
        library = build(_text(), {}, "guards", 0, options, ("-O2", f"-I{header.parent}"))
    except BuildError as error:
        record(FellBack("guards in C", f"{error.what}: {error.why}"))
        return None
    address = ctypes.cast(library.plumbline_guard_evaluator, ctypes.c_void_p).value
    assert address is not None
    start = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object)(address)
    layout = tensor_layout()
    getters = (torch.Tensor.requires_grad, torch.Tensor.is_leaf)
    return start(layout.places() if layout is not None else None, getters)


def _text() -> str:
    """Return the C file for this interpreter: the text names the version, so that no other one loads it."""
    names = "".join(f"#define OP_{op.name} {op.value}\n" for op in StepOp)
    abi = f"{sysconfig.get_config_var('SOABI')} {struct.calcsize('P')}"
    return (
        f'/* {abi} */\n#define PY_SSIZE_T_CLEAN\n#include "Python.h"\n#include "structmember.h"\n'
        f"{names}#define OP_LAST_FETCH {int(LAST_FETCH)}\n{_SOURCE.read_text()}"
    )
