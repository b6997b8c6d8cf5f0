"""A user's script under the noise meter: its marked calls, one function of it, or the script as a whole.

A script that names `measure_noise` or `NoiseMeter` measures its own calls.  Any other is one program, and the tensors
that its names hold in the end are the outputs.
"""

import inspect
import linecache
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from plumbline.compiler.base.errors import UserError

from .measuring import NoiseMeter, float_tensors, reports_of_block
from .noise_report import NoiseReport
from .recorded_run import RecordedRun

_MARKS = ("measure_noise", "NoiseMeter")


def script_reports(target: str, arguments: list[str], meter: NoiseMeter) -> list[NoiseReport]:
    """Run `script.py` or `script.py::function` as Python would, and return the noise of what is measured.

    arguments: what the script sees as `sys.argv[1:]`.  An exception of the script is raised as it is.
    Raises UserError for a file or function that is not there, or a function that needs arguments.
    """
    file, _, function = target.partition("::")
    path = Path(file)
    if not path.is_file():
        raise UserError(f"there is no file {file}", hint="name a Python script, such as train.py or train.py::loss")
    source = path.read_text(encoding="utf-8")
    with _as_main(path, arguments) as module:
        if function:
            module.__dict__["__name__"] = path.stem  # as if imported: the script's own main part stays out
            _execute(module, source, path)
            return [meter.measure(_function(module, function, target))]
        if any(mark in source for mark in _MARKS):
            with reports_of_block() as reports:
                _execute(module, source, path)
            return reports
        with RecordedRun() as run:
            _execute(module, source, path)
        outputs = dict(_named_tensors(module, run))
        with run.aside():
            return [meter.report(path.name, run, outputs, None)]


def _execute(module: ModuleType, source: str, path: Path) -> None:
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except SystemExit as end:
        if end.code not in (None, 0):
            raise


def _function(module: ModuleType, name: str, target: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        names = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        known = f"; it has {', '.join(names[:8])}" if names else ""
        raise UserError(f"there is no function {name}{known}", where=target, hint="name one of the script's functions")
    needed = [
        parameter.name
        for parameter in inspect.signature(found).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        hint = "name one without arguments, or call plumbline.measure_noise(function, ...) in the script"
        raise UserError(f"{name} needs arguments ({', '.join(needed)})", where=target, hint=hint)
    return found


def _named_tensors(module: ModuleType, run: RecordedRun) -> Iterator[tuple[str, Tensor]]:
    """Yield what the names of a script hold in the end, and gradients of modules and leaves, if the run computed it."""
    for name, value in vars(module).items():
        if name.startswith("__") or isinstance(value, ModuleType | type):
            continue
        if isinstance(value, nn.Module):
            found = [(f"gradient of {name}.{path}", leaf.grad) for path, leaf in value.named_parameters()]
        else:
            found = [*float_tensors(value, name)]
            found += [(f"gradient of {path}", each.grad) for path, each in found if each is not None and each.is_leaf]
        for path, tensor in found:
            if tensor is not None and run.pair_of(tensor)[0] is not None:
                yield path, tensor.detach()


@contextmanager
def _as_main(path: Path, arguments: list[str]) -> Iterator[ModuleType]:
    """Let a fresh module be `__main__`, with the script's folder first on the path and its arguments."""
    module = ModuleType("__main__")
    module.__file__ = str(path)
    kept = sys.modules.get("__main__"), sys.argv, list(sys.path)
    sys.modules["__main__"] = module
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    linecache.checkcache(str(path))
    try:
        yield module
    finally:
        main, sys.argv, sys.path[:] = kept
        if main is not None:
            sys.modules["__main__"] = main


def users_traceback(error: BaseException) -> str:
    """Return the traceback of a script's exception from the script's own first line on."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = str(Path(__file__))
    start = max((n for n, frame in enumerate(frames) if frame.filename == ours), default=-1) + 1
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames[start:])]
    return "".join([*lines, *traceback.format_exception_only(error)]).rstrip()
