"""What a program says beside its result: printed text, warnings, records of logs. Compared and reported, never failed.

Only reference and trial runs are listened to, whose words nobody hears; the live run is the user's alone.
"""

import contextlib
import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..state.run_outcome import RunOutcome
from .matching import AFTER_ALL, Difference, MatchedOutcomes

_OF_COMPILERS = ("/torch/_dynamo/", "/torch/_inductor/", "/torch/_functorch/", "/torch/fx/", "/plumbline/", "/sympy/")
_LOGS_OF_COMPILERS = ("torch.", "plumbline", "sympy", "filelock", "concurrent")


@dataclass(slots=True, eq=False)
class Spoken:
    """printed: text on the two standard streams.  warned, logged: one line for each."""

    printed: io.StringIO = field(default_factory=io.StringIO)
    warned: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)

    def parts(self) -> dict[str, str]:
        """Return everything as texts by what it is."""
        return {
            "printed text": self.printed.getvalue(),
            "warnings": "; ".join(self.warned),
            "log": "; ".join(self.logged),
        }


@contextlib.contextmanager
def listening() -> Iterator[Callable[[], dict[str, str]]]:
    """Listen to the block, and let nobody hear it."""
    spoken = Spoken()
    handle = logging.Logger.handle

    def keep(logger: logging.Logger, record: logging.LogRecord) -> None:
        if not logger.name.startswith(_LOGS_OF_COMPILERS):
            spoken.logged.append(f"{record.levelname} {logger.name}: {record.getMessage()}"[:200])

    def note(message: Warning | str, category: type[Warning], filename: str, *_: Any, **__: Any) -> None:
        if not any(part in filename for part in _OF_COMPILERS):
            spoken.warned.append(f"{category.__name__}: {message}"[:200])

    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(spoken.printed),
        contextlib.redirect_stderr(spoken.printed),
    ):
        warnings.simplefilter("always")
        warnings.showwarning = note
        logging.Logger.handle = keep  # type: ignore[method-assign, assignment]  # records are kept, not handled
        try:
            yield spoken.parts
        finally:
            logging.Logger.handle = handle  # type: ignore[method-assign]  # put back
            sys.stdout.flush()


def spoken_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield what the compiled run said otherwise than eager."""
    eager, actual = (_said(outcome) for outcome in (outcomes.eager, outcomes.actual))
    for name in eager.keys() & actual.keys():
        if eager[name] != actual[name]:
            yield Difference(AFTER_ALL, name, f"is {actual[name][:80]!r}, eager's is {eager[name][:80]!r}")


def _said(outcome: RunOutcome) -> dict[str, str]:
    said = outcome.observed.get("spoken", {})
    assert isinstance(said, dict)
    return said


def text_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield a difference of the texts of two exceptions of one class."""
    eager, actual = outcomes.eager.error, outcomes.actual.error
    if eager is not None and type(eager) is type(actual) and str(eager) != str(actual):
        yield Difference(AFTER_ALL, "text of the exception", f"is {str(actual)[:80]!r}, eager's is {str(eager)[:80]!r}")
