"""One call judged without pytest: `check(fn, args)` compiles, judges and names the faulty stage."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from plumbline.compiler.base.errors import UserError

from ..judge import judge_call
from ..judge_options import JudgeOptions
from ..state.snapshot import Snapshot
from ..verdict import Verdict, VerdictKind
from .boundary import Boundary, call_roots, name_apart
from .compilers import CompileRequest, rungs_below
from .known_compilers import find_compiler


def check(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    compiler: str = "torch",
    backend: str = "inductor",
    request: CompileRequest | None = None,
    compiled: Callable[..., Any] | None = None,
    options: JudgeOptions | None = None,
) -> Verdict:
    """Judge one call of `fn` compiled against the same call of `fn` in eager mode.

    args, kwargs: the call; tensors, modules and containers in them end as after one compiled call.
    compiled: judge this callable instead of compiling `fn`.  request: fullgraph, dynamic, mode, options of the compile.
    Returns the verdict; a failed one has `stage` set to the first wrong backend of the ladder.
    Raises UserError for an unknown compiler or backend, or `args` that is not a tuple.

    >>> import torch
    >>> from plumbline.oracle import check
    >>> check(torch.sin, (torch.ones(3),), compiled=torch.sin).kind.value
    'EQUAL'
    >>> check(torch.sin, (torch.ones(3),), compiled=torch.cos).kind.value
    'WRONG'
    """
    if not isinstance(args, tuple):
        raise UserError(f"args is a {type(args).__name__}, not a tuple", hint="write check(fn, (x,)) for one argument")
    options = options or JudgeOptions()
    keywords = dict(kwargs or {})
    if compiled is not None:
        roots = call_roots(fn, "reference", args, keywords)
        roots[name_apart("compiled", roots)] = compiled
        return judge_call(fn, compiled, args, keywords, options, roots).verdict
    request = request or CompileRequest()
    roots = call_roots(fn, "function", args, keywords)
    before = Snapshot.take(roots)

    def judge_with(lower: str) -> Verdict:
        return _judge_compiled(fn, args, keywords, compiler, lower, request, options)

    verdict = judge_with(backend)
    if not verdict.failed:
        return verdict
    after = Snapshot.take(roots)
    stage = _first_wrong(before, judge_with, backend)
    after.rewind()
    return replace(verdict, stage=stage)


def _judge_compiled(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    compiler: str,
    backend: str,
    request: CompileRequest,
    options: JudgeOptions,
) -> Verdict:
    under_test = find_compiler(compiler, backend)
    under_test.reset()
    label = type(fn).__name__ if isinstance(fn, torch.nn.Module) else getattr(fn, "__name__", "function")
    boundary = Boundary(fn, label, request, under_test, backend, options)
    judgement = boundary.call(args, kwargs)
    assert judgement is not None, "the first call of a boundary is always judged"
    verdict = boundary.counted(judgement.verdict)
    under_test.reset()
    if verdict.kind is VerdictKind.EQUAL and not verdict.ops:
        return replace(verdict, kind=VerdictKind.VACUOUS, sentence="nothing was compiled, so nothing was tested")
    return verdict


def _first_wrong(before: Snapshot, judge_with: Callable[[str], Verdict], backend: str) -> str:
    """Return the first backend of the ladder that fails; each starts from the state before the call."""
    for lower in rungs_below(backend):
        before.rewind()
        if judge_with(lower).failed:
            return lower
    return backend
