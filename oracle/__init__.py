"""The judge: whether a compiled call is right, with numbers and a reason.

`check` judges one call, `assert_same` compares two results, `measure_noise` says which lines lose digits.  Names are
loaded when first used, because the judge imports torch and its siblings here (the verdict, the options, the import
hook) must not.
"""

import importlib
from typing import Any

__all__ = [
    "JudgeOptions",
    "NoiseMeter",
    "NoiseReport",
    "ResultsDiffer",
    "Verdict",
    "VerdictKind",
    "assert_same",
    "check",
    "measure_noise",
]

_HOMES = {
    "assert_same": "assertion.same_results",
    "check": "harness.checking",
    "measure_noise": "noise_meter.measuring",
    "JudgeOptions": "judge_options",
    "NoiseMeter": "noise_meter.measuring",
    "NoiseReport": "noise_meter.noise_report",
    "ResultsDiffer": "assertion.same_results",
    "Verdict": "verdict",
    "VerdictKind": "verdict",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
