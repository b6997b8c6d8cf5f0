"""What is done once about compiled code: at its first call the levels before it run beside it, on copies."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ..base.errors import InternalError
from ..base.events import Validated, record
from ..base.torch_facts import without_dispatch_modes
from .departure import compare_levels
from .program_level import ProgramLevel


class StageDeparture(InternalError):
    """A stage of ours gives something else than the stage before it. stage: its name."""

    def __init__(self, stage: str, before: str, text: str) -> None:
        self.stage = stage
        hint = "please report it with the bundle; the graph runs operator by operator"
        super().__init__(f"{stage} departs from {before}: {text}", hint=hint)

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross process borders; the stage is in the text."""
        return partial(InternalError, hint=self.hint), (self.what,)


@dataclass(slots=True, eq=False)
class FirstCall:
    """Says of one piece of compiled code whether it may be used.

    part: what it is, for the record.  levels: made when needed, and let go afterwards.  report: puts a departure
    on record.  strict: raise it as well.
    """

    part: str
    levels: Callable[[], Sequence[ProgramLevel]] | None
    report: Callable[[StageDeparture, Sequence[object]], None]
    strict: bool
    departed: bool = field(default=False)

    @property
    def is_settled(self) -> bool:
        """Whether the levels have been compared."""
        return self.levels is None

    def departs(self, arguments: Sequence[object], backward: Sequence[int] | None = None) -> bool:
        """Compare the levels at the first call whose program does not raise; return whether one has departed.

        Raises StageDeparture under `strict`.
        """
        if self.levels is None:
            return self.departed
        start = time.perf_counter()
        with without_dispatch_modes():
            comparison = compare_levels(self.levels(), arguments, backward=backward)
        if len(comparison.compared) < 2:
            return False  # the program itself raises: nothing is known yet
        self.levels = None
        departure = comparison.departure
        stage = departure.stage if departure is not None else ""
        record(Validated(self.part, comparison.compared, stage, time.perf_counter() - start))
        if departure is None:
            return False
        self.departed = True
        error = StageDeparture(departure.stage, departure.before, departure.text)
        self.report(error, arguments)
        if self.strict:
            raise error
        return True
