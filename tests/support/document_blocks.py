"""Code blocks of Markdown documents, so that what a document shows can be run.

A fenced block is shown as `python` (executed; the blocks of one document share their names), `output` (compared with
what the Python blocks printed), `console` (lines after `$ ` are run, and the lines below are their output, `...`
standing for anything), or anything else (not run).

A comment on the line above a block changes what happens to it:

* `<!-- not run: why -->` leaves the block out;
* `<!-- exits 1 -->` gives the exit status of its commands, when that is not 0;
* `<!-- file: test_model.py -->` saves the block in the document's folder instead of running it.

A document that contains `<!-- starts in an empty directory -->` runs its commands in an empty folder, not in the tree.
"""

import re
from dataclasses import dataclass
from pathlib import Path

NOTE = r"(?:^<!-- (?:not run: (?P<reason>[^\n]+)|exits (?P<status>\d+)|file: (?P<file>[\w./-]+)) -->\n+)?"
FENCE = re.compile(NOTE + r"^```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^```\s*$", re.M | re.S)
EMPTY_DIRECTORY = "<!-- starts in an empty directory -->"


@dataclass(frozen=True)
class Block:
    """One fenced block of a document.

    line: its first line, from 1.  not_run: why it is not run, empty if it is.  status: exit status of its commands.
    file: the name under which the block is saved instead of being run, empty if it is run.
    """

    language: str
    text: str
    line: int
    not_run: str
    status: int
    file: str

    def save(self, folder: Path) -> None:
        """Write the block to its file in a folder."""
        path = folder / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text, encoding="utf-8")

    def commands(self) -> list[tuple[str, str]]:
        """Return (command, expected output) of a console block; a command may go on after a backslash."""
        parts = re.split(r"^\$ ", self.text, flags=re.M)[1:]
        pairs = []
        for part in parts:
            command, _, output = re.sub(r"\\\n", " ", part).partition("\n")
            pairs.append((command, output))
        return pairs


def blocks_of(document: str) -> list[Block]:
    """Return the fenced blocks of a document, in order."""
    return [
        Block(
            match["language"],
            match["text"],
            document.count("\n", 0, match.start("text")) + 1,
            match["reason"] or "",
            int(match["status"] or 0),
            match["file"] or "",
        )
        for match in FENCE.finditer(document)
    ]
