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


@contextlib.contextmanager
def standing() -> Iterator[Callable[[], tuple[object, ...]]]:
    """Note where output goes and which warnings are shown; what it yields says what is otherwise now.

    Of new filters of warnings those count that hide or raise them and name neither a text nor a module: imports leave
    such as name one.
    """
    before = _streams()
    filters = list(warnings.filters)

    def changed() -> tuple[object, ...]:
        others = [type(one).__name__ for one, old in zip(_streams(), before, strict=True) if one is not old]
        new = {(each[0], str(each[2])) for each in warnings.filters if each not in filters and _is_wide(each)}
        return (*others, *sorted(new))

    yield changed


def _streams() -> tuple[object, object]:
    return sys.stdout, sys.stderr


def _is_wide(entry: Any) -> bool:
    """Return whether a filter of warnings silences or raises them all, whatever their text and module."""
    return entry[0] in ("error", "ignore") and entry[1] is None and entry[3] is None


def stream_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield that output goes elsewhere, or that warnings are shown otherwise, than after eager."""
    eager, actual = (outcome.observed["streams"] for outcome in (outcomes.eager, outcomes.actual))
    if eager != actual:
        yield Difference(
            AFTER_ALL, "output and warnings", f"go to {actual or 'where they did'}, after eager to {eager}"
        )


def _said(outcome: RunOutcome) -> dict[str, str]:
    said = outcome.observed.get("spoken", {})
    assert isinstance(said, dict)
    return said


def text_differences(outcomes: MatchedOutcomes) -> Iterator[Difference]:
    """Yield differences of what two exceptions of one class say: text, notes, attributes, cause."""
    eager, actual = outcomes.eager.error, outcomes.actual.error
    if eager is not None and type(eager) is type(actual) and str(eager) != str(actual):
        yield Difference(AFTER_ALL, "text of the exception", f"is {str(actual)[:80]!r}, eager's is {str(eager)[:80]!r}")
    if eager is not None and actual is not None and type(eager) is type(actual):
        for name, first, second in zip(("attributes", "cause"), _more(eager), _more(actual), strict=True):
            if first != second:
                yield Difference(AFTER_ALL, f"{name} of the exception", f"is {second!r}, eager's is {first!r}"[:200])


def _more(error: BaseException) -> tuple[dict[str, str], str]:
    """Return the attributes of an exception, with its notes, as text; and the class of its cause."""
    fields = {name: repr(held) for name, held in vars(error).items() if not name.startswith("_") or name == "__notes__"}
    return {**fields, "args": str(len(error.args))}, type(error.__cause__).__name__
