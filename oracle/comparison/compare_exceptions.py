"""Exceptions compared: a compiled program must raise what eager raises, as far as an `except` clause can tell."""

from collections.abc import Iterator

from ..verdict import VerdictKind
from .matching import BEFORE_ALL, Difference, MatchedOutcomes

# Failures of a compiler itself, by class name along the class's ancestry: no user program raises them.
COMPILER_FAILURES = frozenset(
    {
        "InternalTorchDynamoError",
        "BackendCompilerFailed",
        "InductorError",
        "Unsupported",
        "InternalError",
        "BuildError",
        "FailOnRecompileLimitHit",
        "RecompileError",
        "CppCompileError",
        "LoweringException",
        "UserError",
    }
)


def _first_line(error: BaseException) -> str:
    text = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


def is_compiler_failure(error: BaseException) -> bool:
    """Return whether the exception is the compiler's own, not the program's."""
    own = (base for base in type(error).__mro__ if base.__module__.split(".")[0] in ("torch", "plumbline"))
    return any(base.__name__ in COMPILER_FAILURES for base in own)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        inner = getattr(current, "inner_exception", None)
        current = inner if isinstance(inner, BaseException) else current.__cause__


def exception_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield a difference when the two calls do not raise alike."""
    difference = exception_difference(outcomes.eager.error, outcomes.actual.error)
    if difference is not None:
        yield difference


def exception_difference(
    eager: BaseException | None, actual: BaseException | None, phase: str = "the call"
) -> Difference | None:
    """Compare what two runs raised; None when alike.

    Alike means: the compiled program's exception is caught by every `except` clause that catches eager's.
    """
    where = f"exception in {phase}"
    if eager is None and actual is None:
        return None
    if eager is None:
        assert actual is not None
        crash = is_compiler_failure(actual) or isinstance(actual, MemoryError)
        sentence = f"raises {_first_line(actual)}; eager raises nothing"
        return Difference(BEFORE_ALL, where, sentence, VerdictKind.CRASH if crash else VerdictKind.WRONG)
    if actual is None:
        return Difference(BEFORE_ALL, where, f"raises nothing; eager raises {_first_line(eager)}")
    if _is_caught_alike(eager, actual) and not _hides_another(eager, actual):
        return None
    return Difference(BEFORE_ALL, where, f"raises {_first_line(actual)}; eager raises {_first_line(eager)}")


def _is_caught_alike(eager: BaseException, actual: BaseException) -> bool:
    """Return whether every `except` clause for eager's exception catches this one; of a group, every `except*`."""
    if not isinstance(actual, type(eager)):
        return False
    if not isinstance(eager, BaseExceptionGroup) or not isinstance(actual, BaseExceptionGroup):
        return True
    members = list(zip(eager.exceptions, actual.exceptions, strict=False))
    same_number = len(eager.exceptions) == len(actual.exceptions)
    return same_number and all(_is_caught_alike(one, other) for one, other in members)


def _hides_another(eager: BaseException, actual: BaseException) -> bool:
    """Return whether a compiler's failure, which is a RuntimeError too, wraps something eager does not raise."""
    if not is_compiler_failure(actual):
        return False
    return not any(isinstance(cause, type(eager)) for cause in _causes(actual) if cause is not actual)
