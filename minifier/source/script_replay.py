"""A source script run again: its program in fresh children of this process, judged as when it was reduced."""

import tempfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ..failure_signature import FailureSignature
from .source_run import SourceSettings
from .warm_process import answered


def replay(script: str, expected: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[int, str]:
    """Return (exit status, sentence): 1 the failure is there, 0 it is not, 2 another one is, 125 cannot test.

    script: the file.  expected: the signature as plain data.  settings: fields of SourceSettings.
    """
    sought = FailureSignature(**expected)
    known = {field.name for field in fields(SourceSettings)}
    chosen = SourceSettings(**{name: value for name, value in settings.items() if name in known}, sought=sought)
    with tempfile.TemporaryDirectory(prefix="plumbline-replay-", ignore_cleanup_errors=True) as folder:
        report = answered(folder, Path(script).read_text(encoding="utf-8"), chosen)
    if report.own_error:
        return 125, f"cannot test: without a compiler: {report.own_error}"
    if report.signature is None:
        return 0, f"does not reproduce: {report.sentence}"
    if not sought.matches(report.signature):
        return 2, f"fails in another way: {report.signature.sentence()}: {report.sentence}"
    return 1, f"reproduces: {report.sentence}"
