"""What a session records itself as: its kind, suite and run, and which part of the run it is."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.reports.rows import KINDS

from ..settings import ATTEMPT, KIND, RUN, SHARD, SUITE, setting_value

_RUN_NAME = re.compile(r"[\w.:/+-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """How this session is recorded.

    kind: one of reports.rows.KINDS.  suite: "" for the only one.  run: name of the run, "" for a fresh one.
    shard, shards: this is part `shard` of `shards` of the run.  attempt: above 1, rows are retries of that run.
    """

    kind: str = "local"
    suite: str = ""
    run: str = ""
    shard: int = 1
    shards: int = 1
    attempt: int = 1


def read_run_plan(config: pytest.Config) -> RunPlan:
    """Return the checked settings about the run; UserError for the first bad value."""
    kind = setting_value(config, KIND) or "local"
    if kind not in KINDS:
        why = f"available: {', '.join(KINDS)}"
        raise UserError(f"unknown kind {kind!r}", where=KIND.option, why=why, hint=f"write {KIND.option}=local")
    run = setting_value(config, RUN) or ""
    if run and not _RUN_NAME.fullmatch(run):
        hint = "write letters, digits and . : / + - _, at most 100"
        raise UserError(f"{run!r} cannot name a run", where=RUN.option, hint=hint)
    shard, shards = _shard(setting_value(config, SHARD))
    attempt = _attempt(setting_value(config, ATTEMPT))
    if (shards > 1 or attempt > 1) and not run:
        option = SHARD.option if shards > 1 else ATTEMPT.option
        raise UserError(f"{option} needs the name of the run", hint=f"add {RUN.option}=NAME, the same for all parts")
    return RunPlan(
        kind=kind, suite=setting_value(config, SUITE) or "", run=run, shard=shard, shards=shards, attempt=attempt
    )


def _shard(text: str | None) -> tuple[int, int]:
    if not text:
        return 1, 1
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UserError(
            f"{text!r} is no shard", where=SHARD.option, hint=f"write {SHARD.option}=2/4 for the second of 4"
        )
    return int(match[1]), int(match[2])


def _attempt(text: str | None) -> int:
    if not text:
        return 1
    if not text.isdigit() or int(text) < 2:
        raise UserError(f"{text!r} is no retry", where=ATTEMPT.option, hint=f"write {ATTEMPT.option}=2")
    return int(text)


def partial_reason(option: Mapping[str, object], plan: RunPlan, args: list[str], *, deselected: int) -> str:
    """Return why not every test has its turn, in words; "" where all that belongs to the suite does.

    option: pytest's own options.  args: paths that were typed.  A nightly run defines its suite by what it selects.
    """
    if option.get("lf") or option.get("failedfirst_only"):
        return "--lf"
    if plan.kind == "nightly":
        return ""
    if option.get("keyword"):
        return f"-k {option['keyword']}"
    if option.get("markexpr"):
        return f"-m {option['markexpr']}"
    if option.get("deselect") or deselected:
        return f"{deselected or 'some'} tests deselected"
    named = [arg for arg in args if "::" in arg or arg.endswith(".py")]
    return f"only {' '.join(named)}"[:200] if named else ""
