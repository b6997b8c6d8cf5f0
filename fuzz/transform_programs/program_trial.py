"""One program with transforms, compiled at the level that it names and judged against eager by the oracle."""

import functools
import warnings
from dataclasses import replace

import torch

from plumbline.oracle.harness.boundary import call_roots
from plumbline.oracle.harness.compilers import CompileRequest, CompilerUnderTest
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import VerdictKind

from ..findings import TrialResult, signature_of
from ..generated_source import functions_of
from .laws import broken_law
from .programs import TransformProgram

OPTIONS = JudgeOptions()


@functools.cache
def import_for_transforms() -> None:
    """Let torch import what its transforms need, its compiler among it."""
    one = torch.ones(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.func.jvp(torch.func.grad(torch.sum), (one,), (one,))
        torch.vmap(torch.sin)(one)


def try_program(
    program: TransformProgram, compiler: CompilerUnderTest, backend: str, *, laws: bool = False
) -> TrialResult:
    """Judge one program under one compiler; laws: check that eager keeps the laws of the transforms.

    Never raises what the program raises; the verdict says it.
    """
    compiler.reset()
    source = program.source()
    reference, namespace = functions_of(source), functions_of(source)
    name = f"f{program.compiled}"
    candidate = compiler.compile(namespace[name], backend, CompileRequest(), rng=OPTIONS.rng)
    namespace[name] = candidate
    compiled = namespace[program.entry]
    args = program.arguments()
    target = reference[program.entry]
    verdict = judge_call(target, compiled, args, {}, OPTIONS, call_roots(target, "function", args, {})).verdict
    done = candidate.statistics()
    compiler.reset()
    verdict = replace(verdict, graphs=done.graphs, ops=done.ops, breaks=done.breaks, recompiles=done.recompiles)
    signature = signature_of(verdict, program.names)
    if signature is None and laws and verdict.kind is not VerdictKind.EAGER_FAILED:
        law = broken_law(program)
        if law is not None:
            return TrialResult(law, signature_of(law, program.names))
    if verdict.kind is VerdictKind.EQUAL and not done.ops:
        verdict = replace(verdict, kind=VerdictKind.VACUOUS, sentence="nothing was compiled, so nothing was tested")
    return TrialResult(verdict, signature)
