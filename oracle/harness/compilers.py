"""Compilers under test, behind one protocol; the judge knows no compiler by name."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

LADDER = ("eager", "aot_eager", "inductor")
"""Backends, each doing more than the one before; the first wrong one is the faulty stage."""
DECOMPOSED = "aot_eager_decomp_partition"
"""A further rung, below `inductor`, that is tried where it is asked for by name: all but the generated code."""


TRITON = "triton"
"""A rung above `inductor`, which differs from it in the language of kernels alone; asked for by name, too."""


def rungs_below(backend: str) -> tuple[str, ...]:
    """Return the backends of the ladder that do less than this one; none for one that is not on it."""
    if backend == DECOMPOSED:
        return LADDER[:-1]
    if backend == TRITON:
        return LADDER
    return LADDER[: LADDER.index(backend)] if backend in LADDER else ()


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """What the user asked of a compiler besides the backend; names as in torch.compile."""

    fullgraph: bool = False
    dynamic: bool | None = None
    mode: str | None = None
    options: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompileEvent:
    """One thing a compiler did, in words.

    kind: graph_break, ran_eagerly, recompile, internal_error, stage or kernel.  what: the reason, guard, stage or
    kernel.  where: the user's `file:line`, "" if none.  seconds: wall time of stages and builds, else 0.
    """

    kind: str
    what: str
    where: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CompileStatistics:
    """What a compiler did: graphs and operators captured, reasons of graph breaks, recompiles, wall seconds.

    events: in order, as far as the compiler reports them.  compile_cpu: CPU seconds of the calls that compiled, with
    those of child processes; measured alike for every compiler, so that their ratio means something.
    """

    graphs: int = 0
    ops: int = 0
    breaks: tuple[str, ...] = ()
    recompiles: int = 0
    compile_seconds: float = 0.0
    events: tuple[CompileEvent, ...] = ()
    compile_cpu: float = 0.0

    def __add__(self, other: "CompileStatistics") -> "CompileStatistics":
        """Sum the counts; each reason of a break once."""
        return CompileStatistics(
            self.graphs + other.graphs,
            self.ops + other.ops,
            tuple(dict.fromkeys(self.breaks + other.breaks)),
            self.recompiles + other.recompiles,
            self.compile_seconds + other.compile_seconds,
            self.events + other.events,
            self.compile_cpu + other.compile_cpu,
        )


def cpu_seconds() -> float:
    """Return the CPU seconds that this process and its ended children have used."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Candidate(Protocol):
    """A compiled program on trial."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the compiled program."""

    def statistics(self) -> CompileStatistics:
        """Return what was compiled for it so far."""


class CompilerUnderTest(Protocol):
    """One compiler with named backends.  double_backward: whether it means gradients to be differentiated again."""

    name: str
    backends: tuple[str, ...]
    double_backward: bool

    def compile(self, target: Callable[..., Any], backend: str, request: CompileRequest, *, rng: str) -> Candidate:
        """Compile a function or module; rng "eager" reproduces eager's draws, "native" allows the compiler its own."""

    def reset(self) -> None:
        """Discard everything compiled, so that no test sees another's specialisations."""
