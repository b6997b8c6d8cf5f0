"""The rows of a sweep on disk: one JSON line for each task, so that a run cut at any moment can go on."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from plumbline.compiler.base.errors import UserError

FORMAT = 1


class RowStore:
    """An open file of rows.  A context manager; `append` returns when the row is written.

    resume: keep the rows that are there; otherwise the file is started again.  retry: keep those without faults only;
    of two rows of one task the later counts.
    settings: what rows depend on; a file that was written under others cannot be resumed.
    Raises UserError for a file that cannot be written, or is not one of rows.
    """

    def __init__(self, file: Path, settings: Mapping[str, object], *, resume: bool, retry: bool = False) -> None:
        self.file = file
        head = {"plumbline_sweep": FORMAT, **settings}
        self.rows: dict[str, dict[str, Any]] = {}
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if resume and file.exists():
                self._read(head)
            else:
                file.write_text(json.dumps(head) + "\n", encoding="utf-8")
            if retry:
                self.rows = {name: row for name, row in self.rows.items() if not row["faults"]}
            self._open = file.open("a", encoding="utf-8")
        except OSError as error:
            hint = "choose another folder with --save"
            raise UserError("cannot write the rows", where=str(file), why=error.strerror or "", hint=hint) from None

    def _read(self, head: Mapping[str, object]) -> None:
        """Read the rows; a last line that was cut in the middle is removed."""
        text = self.file.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            os.truncate(self.file, len(whole.encode()))
        lines = whole.splitlines()
        try:
            first = json.loads(lines[0]) if lines else {}
            rows = [json.loads(line) for line in lines[1:]]
        except ValueError as error:
            hint = "start again without --resume"
            raise UserError("not a file of rows", where=str(self.file), why=str(error)[:80], hint=hint) from None
        if first != head:
            hint = "resume with the options of that run, or start again without --resume"
            raise UserError("the rows were written with other options", where=str(self.file), hint=hint)
        self.rows = {row["task"]: row for row in rows}

    def append(self, row: dict[str, Any]) -> None:
        """Write one row."""
        self.rows[row["task"]] = row
        self._open.write(json.dumps(row) + "\n")
        self._open.flush()

    def __enter__(self) -> "RowStore":
        """Return the store."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._open.close()
