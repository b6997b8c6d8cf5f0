"""An error inside the judge: the user's call goes on as it would unjudged, and a bundle on disk tells of the error."""

import inspect
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import torch

from plumbline.compiler.base.bundle import Failure, write_bundle
from plumbline.compiler.base.options import options_from_environment

from .verdict import Finding, VerdictKind

STAGE = "the judge"
_CONSEQUENCE = "the call ran compiled, unjudged"
_MOST_PLACES = 200


def failure_finding(error: Exception) -> Finding:
    """Return what a verdict says of an error inside the judge."""
    sentence = f"{type(error).__name__} inside the judge: {error}".replace("\n", " ")[:300]
    return Finding(VerdictKind.JUDGE_FAILED, "python", STAGE, sentence)


def failure_notes(error: Exception, program: object, roots: Mapping[str, object], most: int) -> tuple[str, ...]:
    """Write the bundle and return the notes of the verdict: where it is, then the end of the traceback.

    program: what was judged, in eager mode.  roots: what its call reached, described by type and form alone.
    """
    function: Any = getattr(program, "__func__", program)
    code = getattr(inspect.unwrap(function), "__code__", None)
    texts = {"function.py": _source(code), "call.txt": "\n".join(_descriptions(roots))}
    name = str(getattr(program, "__qualname__", type(program).__qualname__))
    place = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    files = {name: text for name, text in texts.items() if text}
    bundle = write_bundle(Failure(STAGE, name, place, error, files, _CONSEQUENCE), options_from_environment())
    trace = "".join(traceback.format_exception(error)).splitlines()
    return (*((f"please report it with {bundle}",) if bundle else ()), *trace[-most:])


def _source(code: Any) -> str:
    with suppress(OSError, TypeError):
        return inspect.getsource(code)
    return ""


def _descriptions(roots: Mapping[str, object]) -> list[str]:
    """Return a line for each root and each part of a plain container in it; values stay the user's own."""
    lines: list[str] = []
    waiting = list(roots.items())
    while waiting and len(lines) < _MOST_PLACES:
        path, value = waiting.pop(0)
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        lines.append(f"{path}: {_form(value) if isinstance(value, torch.Tensor) else kind}")
        if isinstance(value, torch.nn.Module):
            waiting += [(f"{path}.{name}", part) for name, part in value.named_parameters()]
        elif isinstance(value, (tuple, list, dict)):
            parts = value.values() if isinstance(value, dict) else value
            waiting += [(f"{path}[{number}]", part) for number, part in enumerate(parts)]
    return lines


def _form(value: torch.Tensor) -> str:
    with suppress(RuntimeError, NotImplementedError):
        return (
            f"{type(value).__name__} {tuple(value.shape)} {value.dtype} {value.layout} on {value.device}, "
            f"requires grad {value.requires_grad}"
        )
    return type(value).__name__
