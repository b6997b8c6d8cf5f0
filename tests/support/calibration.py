"""Judge every legitimate variant and every miscompile of the program table."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from plumbline.oracle.noise.lanes import Lanes
from plumbline.oracle.noise.shadow import ShadowRun
from plumbline.oracle.numeric.value_decision import Need
from plumbline.oracle.numeric.value_judgement import judge_values
from plumbline.oracle.verdict import ErrorStatistics, VerdictKind
from support.numeric_programs import VALUE_SETS, Program, inputs_of

LOW_AND_SINGLE = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True, slots=True)
class Trial:
    program: str
    variant: str
    values: str
    dtype: torch.dtype
    legitimate: bool
    kind: VerdictKind
    sentence: str
    numbers: ErrorStatistics | None


class Reference:
    """Eager once, and its lanes as far as they are asked for."""

    def __init__(self, program: Program, inputs: list[Tensor], seed: int = 0) -> None:
        self.program, self.inputs, self.seed = program, inputs, seed
        self.eager = program.eager(*[t.clone() for t in inputs])
        self.lanes: dict[str, Lanes] = {}
        self.seconds: list[float] = []

    def lanes_for(self, need: str) -> Lanes:
        if need not in self.lanes:
            wanted = {"exact": {}, "replicas": {"replicas": 8}, "rounded": {"replicas": 8, "rounded": 4}}[need]
            start = time.perf_counter()
            with ShadowRun(**wanted, seed=self.seed) as run:
                result = self.program.eager(*[t.clone() for t in self.inputs])
            self.lanes[need] = run.lanes_of(result)
            self.seconds.append(time.perf_counter() - start)
            assert not run.untrusted, run.untrusted
        return self.lanes[need]

    def judge(self, actual: Tensor) -> tuple[VerdictKind, ErrorStatistics | None, str]:
        kind, numbers, sentence = judge_values(actual, self.eager, None)
        if kind is VerdictKind.EQUAL:
            return kind, numbers, sentence
        for need in ("exact", "replicas", "rounded"):
            kind, numbers, sentence = judge_values(actual, self.eager, self.lanes_for(need))
            if not isinstance(kind, Need):
                return kind, numbers, sentence
        raise AssertionError(f"undecided with all lanes: {kind}")


def live(program: Program, variant: str, values: str) -> bool:
    """Whether a miscompile computes another function on these values (judged in float64)."""
    inputs = inputs_of(program, values, torch.float64)
    right, wrong = program.eager(*inputs), program.miscompiled[variant](*inputs)
    return bool(((right - wrong).abs() > 1e-9 * right.abs().max()).any())


def trials(programs: Iterable[Program], dtypes: Iterable[torch.dtype] = LOW_AND_SINGLE) -> Iterable[Trial]:
    for program in programs:
        for values in VALUE_SETS:
            for dtype in dtypes:
                reference = Reference(program, inputs_of(program, values, dtype))
                for legitimate, table in ((True, program.legitimate), (False, program.miscompiled)):
                    for variant, function in table.items():
                        if not legitimate and not live(program, variant, values):
                            continue
                        if legitimate and dtype == torch.float64 and not variant.startswith("float64"):
                            continue  # variants with float32 inside are miscompiles of a float64 program
                        actual = function(*reference.inputs).to(dtype)
                        kind, numbers, sentence = reference.judge(actual)
                        yield Trial(program.name, variant, values, dtype, legitimate, kind, sentence, numbers)
