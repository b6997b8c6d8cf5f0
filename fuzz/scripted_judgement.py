"""What the scripts of saved failures call: one judged call, which ends the script with status 1 if it fails."""

import sys
from collections.abc import Callable
from typing import Any

from plumbline.oracle.harness.boundary import call_roots
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import VerdictKind


def demand_equal(function: Callable[..., Any], compiled: Callable[..., Any], *args: Any) -> None:
    """Compare one call in everything that the judge looks at, exceptions too; print the verdict, exit with 1 if bad."""
    roots = call_roots(function, "function", args, {})  # not the compiled one: its caches are not part of the state
    verdict = judge_call(function, compiled, args, {}, JudgeOptions(), roots).verdict
    sys.stdout.write(f"{verdict}\n")
    if verdict.failed or verdict.kind is VerdictKind.JUDGE_FAILED:
        sys.exit(1)
