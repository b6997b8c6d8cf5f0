"""Code blocks of Markdown documents, so that what a document shows can be run.

A fenced block is shown as `python` (executed; the blocks of one document share their names), `console` (lines after
`$ ` are run, and the lines below are their output, `...` standing for anything), or anything else (not run).
On the line above, `<!-- not run: why -->` leaves a block out, and `<!-- exits 1 -->` says with which status its
commands end, when that is not 0.
"""

import re
from dataclasses import dataclass

NOTE = r"(?:^<!-- (?:not run: (?P<reason>[^\n]+)|exits (?P<status>\d+)) -->\n+)?"
FENCE = re.compile(NOTE + r"^```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^```\s*$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """One fenced block of a document.

    line: its first line, from 1.  not_run: why it is not run, empty if it is.  status: with which its commands end.
    """

    language: str
    text: str
    line: int
    not_run: str
    status: int

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
            found["language"],
            found["text"],
            document.count("\n", 0, found.start("text")) + 1,
            found["reason"] or "",
            int(found["status"] or 0),
        )
        for found in FENCE.finditer(document)
    ]
