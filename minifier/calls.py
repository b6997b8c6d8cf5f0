"""The minifier as functions: one call, or one test by its node id, to a result."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.harness.compilers import CompileRequest

from .cases.failing_calls import FailingCall, failing_call
from .minify import MinifyOptions, MinifyResult, NotMinified, minify_failing
from .repro.proof import check_place

NODE_SECONDS = 1800.0
"""Wall time after which minifying a test in its own process is stopped."""


def minify_call(
    target: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    out: Path,
    compiler: str = "plumbline",
    backend: str = "inductor",
    request: CompileRequest | None = None,
    after: str | None = None,
    level: int = 4,
    proofs: int = 3,
) -> MinifyResult:
    """Judge one call of `target` and, if it fails, minify it into the script `out`.

    args, kwargs: as they are before the call; they are rewound afterwards.  Other arguments as in MinifyOptions.
    A failure that could not be minified gives a result without a path and with the reason.
    Raises UserError for an unknown name, a place that cannot be written, or a call that does not fail.
    """
    check_place(out)
    failing = failing_call(target, args, dict(kwargs or {}), compiler=compiler, backend=backend, request=request)
    if not isinstance(failing, FailingCall):
        hint = "minify a call that the judge fails"
        raise UserError("the call does not fail", why=f"{failing.kind.value}: {failing.sentence}", hint=hint)
    try:
        return minify_failing(failing, MinifyOptions(out=out, after=after, level=level, proofs=proofs))
    except NotMinified as error:
        return _without(error.reason, error.one_line())
    finally:
        failing.before.rewind()


def minify_node(
    node_id: str,
    *,
    out: Path,
    compiler: str = "plumbline",
    backend: str = "inductor",
    after: str | None = None,
    level: int = 4,
    proofs: int = 1,
    seconds: float = NODE_SECONDS,
    folder: Path | None = None,
) -> MinifyResult:
    """Minify the first failing compiled call of a test, in a process of its own that does not disturb a session.

    folder: where pytest is run from, by default here; node_id and out are relative to it.
    Never raises for what the test or the minifier does: the result holds the reason.
    """
    command = [
        sys.executable,
        "-m",
        "plumbline.minifier.command_minify",
        node_id,
        "--json",
        "--out",
        str(out),
        "--level",
        str(level),
        "--compiler",
        compiler,
        "--backend",
        backend,
        "--proofs",
        str(proofs),
        *(["--after", after] if after else []),
    ]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return _without("TIMEOUT", f"not minified within {seconds:.0f} s; run repro-minify {node_id}")
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return _from_json(json.loads(line))
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return _without("NOT_RUN", said[-1][:400] if said else f"repro-minify ended with status {done.returncode}")


def _from_json(result: dict[str, Any]) -> MinifyResult:
    if not result["path"]:
        return _without(result["reason"], result["sentence"])
    return MinifyResult(**{**result, "path": Path(result["path"])})


def _without(reason: str, sentence: str) -> MinifyResult:
    return MinifyResult(None, 0, 0, 0, False, sentence, reason=reason)
