"""The spool: every finished row is a line of a file before the database has it, and until it has.

A killed process, a lost connection and a full disk then lose nothing: the next session that opens the same database
sends what lies there (`plumbline spool` does it at once).  Rows are keyed, so that sending them twice stores them once.
Files hold no passwords: a spool names its database as messages do.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from plumbline.compiler.base.errors import UserError

from .rows import CallRow, CaseRow, RunRow
from .store import ResultStore

SPOOL_VARIABLE = "PLUMBLINE_SPOOL"
_ENDING = ".jsonl"
_BATCH = 200  # cases that are sent in one transaction


def spool_folders(root: Path) -> list[Path]:
    """Return where spool files may lie: $PLUMBLINE_SPOOL, else the project's folder; then the temporary directory."""
    asked = os.environ.get(SPOOL_VARIABLE)
    first = Path(asked) if asked else root / ".plumbline" / "spool"
    return [first, Path(tempfile.gettempdir()) / f"plumbline-spool-{os.getuid()}"]


class Spool:
    """The spool file of one session; nothing is written before the first row, and an empty one is deleted.

    lost: rows that found no place in any folder.
    """

    def __init__(self, folders: Sequence[Path], place: str, name: str) -> None:
        self._folders, self._place, self._name = folders, place, name
        self._file: IO[str] | None = None
        self._run: RunRow | None = None
        self._shard = 1
        self.path: Path | None = None
        self.lost = 0

    def begin(self, run: RunRow, shard: int) -> None:
        """Remember the run that rows are of; it is written before the first of them."""
        self._run, self._shard = run, shard

    def add(self, case: CaseRow, calls: Sequence[CallRow]) -> None:
        """Write a finished case with its calls; it is on its way to the disk when this returns."""
        rows = {"case": case.to_dict(), "calls": [call.to_dict() for call in calls]}
        if not self._write(rows):
            self.lost += 1

    def finish(self, utc: str, partial: str) -> None:
        """Write that the session came to its end, for when the rows are sent."""
        self._write({"finished": utc, "partial": partial})

    def sent(self) -> None:
        """Forget everything: the database has it."""
        self.close()
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink()
        self.path = None

    def close(self) -> None:
        """Close the file; what is in it stays."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._file = None

    def _write(self, data: dict[str, Any]) -> bool:
        for folder in self._folders if self.path is None else [self.path.parent]:
            try:
                if self._file is None:
                    self._file = self._open(folder)
                self._file.write(json.dumps(data) + "\n")
                self._file.flush()
            except OSError:  # this folder is full or cannot be written
                self.close()
                continue
            return True
        return False

    def _open(self, folder: Path) -> IO[str]:
        assert self._run is not None
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"{self._name}{_ENDING}"
        opened = path.open("a", encoding="utf-8")
        if not opened.tell():
            header = {"place": self._place, "run": self._run.to_dict(), "shard": self._shard, "pid": os.getpid()}
            opened.write(json.dumps(header) + "\n")
            opened.flush()
        self.path = path
        return opened


@dataclass(frozen=True, slots=True)
class Waiting:
    """A spool file of which nobody is the writer any more."""

    file: Path
    place: str
    run: RunRow
    shard: int
    lines: tuple[dict[str, Any], ...]

    @property
    def cases(self) -> int:
        """Return how many cases wait in it."""
        return sum("case" in line for line in self.lines)


def waiting(folders: Iterable[Path]) -> list[Waiting]:
    """Return the spool files that no living process writes; a last line that was cut off is left out."""
    found = []
    for folder in folders:
        for file in sorted(folder.glob(f"*{_ENDING}")) if folder.is_dir() else []:
            read = _read(file)
            if read is not None:
                found.append(read)
    return found


def _read(file: Path) -> Waiting | None:
    lines = list(_lines(file))
    if not lines or "run" not in lines[0]:
        return None
    header, *rest = lines
    if _alive(int(header["pid"])):
        return None
    try:
        run = RunRow.from_dict(header["run"])
    except UserError:  # of another version; it stays where it is
        return None
    return Waiting(file, str(header["place"]), run, int(header["shard"]), tuple(rest))


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            data = json.loads(line)
        except ValueError:
            continue
        if isinstance(data, dict):
            yield data


def _alive(pid: int) -> bool:
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def send_waiting(store: ResultStore, folders: Iterable[Path]) -> int:
    """Send the rows that wait for this database, delete their files, and return how many cases were sent.

    Raises UserError when the database fails; what was not sent stays.
    """
    sent = 0
    for each in waiting(folders):
        if each.place == store.place:
            _send(store, each)
            each.file.unlink(missing_ok=True)
            sent += each.cases
    return sent


def _send(store: ResultStore, waiting: Waiting) -> None:
    if not store.has_shard(waiting.run.run_id, waiting.shard):
        store.begin_run(waiting.run, shard=waiting.shard)
    rows = [line for line in waiting.lines if "case" in line]
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        cases = [CaseRow.from_dict(row["case"]) for row in batch]
        store.append(cases, [CallRow.from_dict(call) for row in batch for call in row["calls"]])
    for line in waiting.lines:
        if "finished" in line:
            store.finish_run(
                waiting.run.run_id, str(line["finished"]), shard=waiting.shard, partial=str(line["partial"])
            )
