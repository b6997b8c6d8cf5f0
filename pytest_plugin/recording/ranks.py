"""One run of the tests in several processes, as `torchrun -m pytest` starts them: one row a case, of the worst rank.

Every rank runs every test and judges its own calls.  At the end they hand their rows to rank 0 through the store that
the launcher made for them to meet in, so that nothing but the launch is shared by the machines.
"""

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol, TypeAlias

from plumbline.oracle.verdict import VerdictKind
from plumbline.reports.rows import CallRow, CaseRow

Rows: TypeAlias = tuple[CaseRow, list[CallRow]]

WAIT = timedelta(minutes=5)
"""How long rank 0 waits for each other rank at the end: tests that communicate end at about the same time."""

_PREFIX = "plumbline"
_PART = 1 << 20  # bytes of one value of the store


class Meeting(Protocol):
    """What of torch's stores is used: values by key, that one rank sets and another waits for."""

    def set(self, key: str, value: str) -> object:
        """Keep a value under a key."""

    def get(self, key: str) -> bytes:
        """Return the value under a key; waits until there is one, RuntimeError when that takes too long."""


@dataclass(frozen=True, slots=True)
class RankGroup:
    """The processes of one launch: this one's rank, how many there are, and where they meet.

    hosted: whether the launcher keeps the store; else rank 0 does.
    """

    rank: int
    size: int
    host: str
    port: int
    hosted: bool = True

    @property
    def leads(self) -> bool:
        """Return whether this is the process that stores rows and writes reports."""
        return self.rank == 0

    def meeting(self) -> Meeting:
        """Return the store of the launch; RuntimeError where nobody answers."""
        from torch import distributed  # heavy, and only at the end of a run of several ranks

        stores: Any = distributed  # which exports them without saying so
        serves = self.leads and not self.hosted
        store = stores.TCPStore(self.host, self.port, None, serves, WAIT, wait_for_workers=False, multi_tenant=True)
        meeting: Meeting = stores.PrefixStore(_PREFIX, store)
        return meeting


def launched_group(environment: Mapping[str, str]) -> RankGroup | None:
    """Return the group that a launcher of torch describes in the environment, None for a process by itself."""
    try:
        size, rank = int(environment["WORLD_SIZE"]), int(environment["RANK"])
        host, port = environment["MASTER_ADDR"], int(environment["MASTER_PORT"])
    except (KeyError, ValueError):
        return None
    if size < 2 or not 0 <= rank < size:
        return None
    return RankGroup(rank, size, host, port, environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True")


def send_rows(meeting: Meeting, rank: int, rows: Sequence[Rows]) -> None:
    """Hand the rows of a rank to rank 0."""
    text = json.dumps([[case.to_dict(), [call.to_dict() for call in calls]] for case, calls in rows])
    parts = [text[start : start + _PART] for start in range(0, len(text), _PART)]
    for number, part in enumerate(parts):
        meeting.set(f"{rank}/{number}", part)
    meeting.set(f"{rank}", str(len(parts)))


def receive_rows(meeting: Meeting, rank: int) -> list[Rows]:
    """Return the rows that a rank has handed over; RuntimeError when it does not."""
    count = int(meeting.get(f"{rank}"))
    text = "".join(meeting.get(f"{rank}/{number}").decode() for number in range(count))
    return [(CaseRow.from_dict(case), [CallRow.from_dict(call) for call in calls]) for case, calls in json.loads(text)]


def gather(group: RankGroup, meeting: Meeting, rows: Sequence[Rows], run_id: str) -> tuple[list[Rows], str]:
    """Hand over the rows of this rank; on rank 0, return those of the worst rank for each case, and what went wrong.

    Other ranks return no rows.  A rank that does not report is named; the rows are then those of the others.
    """
    if not group.leads:
        send_rows(meeting, group.rank, rows)
        return [], ""
    by_rank: dict[int, Sequence[Rows]] = {0: rows}
    trouble = []
    for rank in range(1, group.size):
        try:
            by_rank[rank] = receive_rows(meeting, rank)
        except RuntimeError as error:
            trouble.append(f"rank {rank} did not hand its rows over: {first_line(error)}")
    return worst_rows(by_rank, group.size, run_id), "; ".join(trouble)


def part(group: RankGroup, meeting: Meeting) -> None:
    """End together: a launcher ends all ranks as soon as one ends with failures, rank 0 in the middle of its report."""
    with contextlib.suppress(RuntimeError):  # nobody is left, so there is nobody to wait for
        if group.leads:
            meeting.set("done", "")
        else:
            meeting.get("done")


def worst_rows(by_rank: Mapping[int, Sequence[Rows]], size: int, run_id: str) -> list[Rows]:
    """Return one row a case and attempt, in the order in which the lowest rank met them: that of the worst rank.

    A sentence says which rank it is, where ranks differ.
    """
    found: dict[tuple[str, int], list[tuple[int, Rows]]] = {}
    for rank, rows in by_rank.items():
        for case, calls in rows:
            found.setdefault((case.case_id, case.attempt), []).append((rank, (case, calls)))
    return [_worst(ranked, size, run_id) for ranked in found.values()]


def _worst(ranked: Sequence[tuple[int, Rows]], size: int, run_id: str) -> Rows:
    rank, (case, calls) = max(ranked, key=lambda each: (_badness(each[1][0]), -each[0]))
    notes = case.notes
    said = {(other.outcome, other.verdict) for _, (other, _) in ranked}
    if len(said) > 1 or len(ranked) < size:
        others = ", ".join(f"{number}: {_word(other)}" for number, (other, _) in ranked if number != rank)
        missing = sorted(set(range(size)) - {number for number, _ in ranked})
        absent = f"; nothing of {'rank' if len(missing) == 1 else 'ranks'} {_listed(missing)}" if missing else ""
        notes = (*notes, f"of rank {rank} of {size}, the worst ({others or 'no other'}{absent})")
    named = f"rank {rank}: {case.sentence}" if case.sentence and len(said) > 1 else case.sentence
    row = replace(case, run_id=run_id, sentence=named, notes=notes)
    return row, [replace(call, run_id=run_id) for call in calls]


def _badness(case: CaseRow) -> tuple[int, int, float]:
    weight = VerdictKind(case.verdict).weight if case.verdict else -1
    margin = case.margin if case.margin == case.margin else float("inf")  # not a number is as bad as can be
    return _SERIOUS.index(case.outcome), weight, margin


# A skip says least; of those that count as passed, the one that needed an excuse says more.
_SERIOUS = ("skipped", "passed", "xfailed", "xpassed", "vacuous", "failed", "error")


def _word(case: CaseRow) -> str:
    return case.verdict or case.outcome


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def first_line(error: Exception) -> str:
    """Return what an error says in one line; errors of stores go on with a stack."""
    return (str(error) or type(error).__name__).splitlines()[0][:200]
