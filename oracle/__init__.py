"""The judge: whether a compiled call is right, with numbers and a reason.

`check` judges one call, `assert_same` compares two results.  Names are loaded when first used, because the judge
imports torch and its siblings here (the verdict, the options, the import hook) must not.
"""

import importlib
from typing import Any

__all__ = ["JudgeOptions", "ResultsDiffer", "Verdict", "VerdictKind", "assert_same", "check"]

_HOMES = {
    "assert_same": "assertion.same_results",
    "check": "harness.checking",
    "JudgeOptions": "judge_options",
    "ResultsDiffer": "assertion.same_results",
    "Verdict": "verdict",
    "VerdictKind": "verdict",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
