"""The plugin's one door to the oracle; imports torch, so only the working half of the plugin comes here."""

from collections.abc import Mapping

from plumbline.oracle.boundary import JudgedCall
from plumbline.oracle.compilers import CompileStatistics
from plumbline.oracle.options import JudgeOptions
from plumbline.oracle.random_state import RandomState
from plumbline.oracle.scope import StateScope, seed_everything
from plumbline.oracle.session import JudgeSession, available_compilers

from .variants import Variant
from .written_asserts import as_written

__all__ = [
    "CompileStatistics",
    "JudgeSession",
    "JudgedCall",
    "RandomState",
    "StateScope",
    "available_compilers",
    "open_session",
    "seed_everything",
    "take_state",
]


def open_session(variant: Variant, *, boundary: str, options: JudgeOptions, targets: tuple[str, ...]) -> JudgeSession:
    """Return a session for one test body; it judges once entered, boundaries as their author wrote them."""
    session = JudgeSession(
        compiler=variant.compiler, backend=variant.backend, boundary=boundary, options=options, targets=targets
    )
    session.prepare = as_written
    return session


def take_state(roots: Mapping[str, object]) -> StateScope:
    """Return a snapshot of all that the roots reach."""
    return StateScope.take(roots)
