"""Commands to copy: what runs one case again, or reduces it."""

import shlex
from collections.abc import Sequence


def repeating_command(test: str, columns: Sequence[str], *, whole: bool) -> str:
    """Return the command for a case; whole: it fails under every column, so that no compiler is needed to see it.

    columns: where it fails, the lightest backend first.
    """
    if whole or not columns:
        return f"pytest {shlex.quote(test)}"
    return f"repro-minify {shlex.quote(case_id(test, columns[0]))}"


def case_id(test: str, column: str) -> str:
    """Return the node id of a test under one backend: the backend's name comes first in the brackets."""
    file, _, inside = test.partition("::")
    if not inside.endswith("]"):
        return f"{test}[{column}]"
    head, _, parameters = inside.partition("[")
    return f"{file}::{head}[{column}-{parameters}"
