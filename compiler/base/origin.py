"""Origin: the chain of user lines that a node, a guard, a break or a kernel came from."""

import linecache
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """One line of user code and the line that called it.

    file: as the code object names it.  line: from 1.  caller: the outer line, None at the outermost frame.
    """

    file: str
    line: int
    function: str
    caller: "Origin | None" = None

    def place(self) -> str:
        """Return `file:line`."""
        return f"{self.file}:{self.line}"

    def source_line(self) -> str:
        """Return the text of the line without its indentation; empty if the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def chain(self) -> "tuple[Origin, ...]":
        """Return the lines from the outermost to the innermost."""
        origins: list[Origin] = []
        here: Origin | None = self
        while here is not None:
            origins.append(here)
            here = here.caller
        return tuple(reversed(origins))

    def stack_text(self) -> str:
        """Return the chain in the shape of a Python traceback, outermost first."""
        rows = []
        for here in self.chain():
            rows.append(f'  File "{here.file}", line {here.line}, in {here.function}')
            text = here.source_line()
            if text:
                rows.append(f"    {text}")
        return "\n".join(rows)
