"""The step of our compiler that is to blame for a failing example: what tells faults apart that look different."""

from typing import Any

from plumbline.minifier.bisect.bisected_cases import CallableCase
from plumbline.minifier.bisect.culprit import culprit_of
from plumbline.minifier.bisect.culprit_search import COARSE
from plumbline.oracle.harness.compilers import CompilerUnderTest

from .findings import FuzzSignature
from .fuzzers import Fuzzer

MOST_RUNS = 60
"""Runs of one example at most; a search takes a dozen."""


def culprit_name(
    mode: Fuzzer, compiler: CompilerUnderTest, backend: str, example: Any, signature: FuzzSignature
) -> str:
    """Return the kind of step and what decided it, such as `lowering aten.sin.default`.

    Empty where it is not found, and where no more is known than a whole stage, which many faults share.
    """

    def fails() -> bool:
        found = mode.attempt(example, compiler, backend).signature
        return found is not None and found.same_failure(signature)

    culprit = culprit_of(CallableCase(fails), budget=MOST_RUNS)
    decisive = culprit.application if culprit is not None else None
    if decisive is None or decisive.kind in COARSE or not decisive.rule:
        return ""
    return f"{decisive.kind} {decisive.rule}"
