"""The plugin's only access to the oracle; imports torch, so only the active half of the plugin imports it."""

from collections.abc import Mapping

from plumbline.oracle.comparison.aspects import aspect_names
from plumbline.oracle.harness.boundary import JudgedCall
from plumbline.oracle.harness.compilers import CompileRequest, CompileStatistics
from plumbline.oracle.harness.known_compilers import available_compilers
from plumbline.oracle.harness.mutants import FAULTS, CompilerFault
from plumbline.oracle.harness.session import JudgeSession
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.state.random_state import RandomState
from plumbline.oracle.state.scope import StateScope, seed_everything

from .rewriting.written_asserts import WrittenCode
from .variants import Variant

__all__ = [
    "CompileStatistics",
    "CompilerFault",
    "JudgeSession",
    "JudgedCall",
    "RandomState",
    "StateScope",
    "aspect_names",
    "available_compilers",
    "fault_names",
    "faults_of",
    "open_session",
    "seed_everything",
    "take_state",
]


def open_session(
    variant: Variant, *, boundary: str, options: JudgeOptions, targets: tuple[str, ...], request: CompileRequest
) -> JudgeSession:
    """Return a session for one test body; it judges once entered, boundaries as their author wrote them."""
    session = JudgeSession(
        compiler=variant.compiler,
        backend=variant.backend,
        boundary=boundary,
        options=options,
        targets=targets,
        request=request,
    )
    session.preparation = WrittenCode()
    return session


def take_state(roots: Mapping[str, object]) -> StateScope:
    """Return a snapshot of all that the roots reach."""
    return StateScope.take(roots)


def fault_names() -> tuple[str, ...]:
    """Return the names of all faults that can be planted."""
    from plumbline.oracle.harness.operator_mutants import operator_faults

    return (*FAULTS, *operator_faults())


def faults_of(variant: Variant, names: tuple[str, ...]) -> tuple[CompilerFault, ...]:
    """Return those of the named faults that this compiler and backend can have."""
    known = dict(FAULTS)
    if (variant.compiler, variant.backend) == ("plumbline", "inductor"):
        from plumbline.oracle.harness.operator_mutants import operator_faults

        known |= operator_faults()
    return tuple(known[name] for name in names if name in known)
