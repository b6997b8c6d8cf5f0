"""How a call is judged, as one frozen object, and which calls are; imports nothing heavy."""

from dataclasses import dataclass

# A boundary is where the test ends and the code that is compiled begins.  `auto` joins `module` and `call`.
BOUNDARIES = ("auto", "module", "call", "explicit")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """The options of a judgement; every default is the strictest sound choice.

    gradients: judge gradients when grad mode is on and an output requires grad.
    rng: "eager" (the compiled run takes eager's draws, compared exactly) or "native" (the compiler's own
    generator, judged as a distribution).
    ignore: aspects that are reported, not failed (names from `comparison.aspects`).
    replicas: number of Monte-Carlo-arithmetic replicas (S of the oracle).
    seed: seed of the oracle's own generators (replica noise, cotangents); never the user's generators.
    samples: runs per side when distributions are compared.
    double_backward: the compiled program's gradients keep their history; where a compiler says that they do not, a
    lost one is reported.
    backward_turn: None for all kinds of backward; a number for the random cotangent and one other kind, in turn.
    told_compiled: eager is told that it is compiled, where the program asks; else a program that goes another way
    then gets the verdict DESIGN.
    """

    gradients: bool = True
    rng: str = "eager"
    ignore: frozenset[str] = frozenset()
    replicas: int = 8
    seed: int = 0
    samples: int = 32
    double_backward: bool = True
    told_compiled: bool = False
    backward_turn: int | None = None
