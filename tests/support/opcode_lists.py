"""Write what an interpreter says of its opcodes, one line each: tests know versions that are not running.

`for v in 3.11 3.12 3.13; do python$v tests/support/opcode_lists.py; done` brings the stored lists up to date. Any
interpreter runs this file; it imports nothing but the standard library.
"""

import dis
import json
import sys
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).resolve().parents[1] / "compiler" / "bytecode" / "data"
SHOWN_ARGUMENTS = range(6)


class OpcodeFacts(NamedTuple):
    """What `dis` says of an opcode.

    argument: whether it takes one.  jump: "" or which way a jump is meant.  caches: units of CACHE after it.
    effects: of arguments 0..5 on the depth of the stack, as [falls through, jumps], null where `dis` knows none.
    """

    number: int
    argument: bool
    jump: str
    caches: int
    effects: list[list[int | None]]


def stored_path(version: tuple[int, int]) -> Path:
    """Return the file of a version's list."""
    return DATA / f"opcodes_{version[0]}.{version[1]}.json"


def stored_opcodes(version: tuple[int, int]) -> dict[str, OpcodeFacts]:
    """Return the list of a version as it was written by that version."""
    table = json.loads(stored_path(version).read_text(encoding="utf-8"))
    return {name: OpcodeFacts(*row) for name, row in table.items()}


def running_opcodes() -> dict[str, OpcodeFacts]:
    """Return the list of this interpreter: what a code object can hold, neither specialised nor instrumented."""
    caches = _cache_entries()
    found = {}
    for name, number in sorted(dis.opmap.items(), key=lambda item: item[1]):
        if number < 256 and not name.startswith("INSTRUMENTED_"):
            jump = "relative" if number in dis.hasjrel else "absolute" if number in dis.hasjabs else ""
            taken = number in dis.hasarg if hasattr(dis, "hasarg") else number >= dis.HAVE_ARGUMENT
            effects = [
                [_effect(number, argument if taken else None, jumps) for jumps in (False, True)]
                for argument in (SHOWN_ARGUMENTS if taken else (0,))
            ]
            if len({tuple(effect) for effect in effects}) == 1:
                del effects[1:]
            found[name] = OpcodeFacts(number, taken, jump, caches.get(name, 0), effects)
    return found


def _effect(number: int, argument: int | None, jumps: bool) -> int | None:
    try:
        return dis.stack_effect(number, argument, jump=jumps)
    except ValueError:
        return None


def _cache_entries() -> dict[str, int]:
    """Return how many CACHE units follow each opcode, as `dis` itself is told."""
    import opcode

    table = opcode._inline_cache_entries  # type: ignore[attr-defined]  # public from 3.13 on as a dict, before a list
    if isinstance(table, dict):
        return dict(table)
    return {name: table[number] for name, number in opcode.opmap.items() if number < len(table)}


def as_text(table: dict[str, OpcodeFacts]) -> str:
    """Return the stored form."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(list(row))}" for name, row in table.items()) + "\n}\n"


if __name__ == "__main__":
    stored_path((sys.version_info[0], sys.version_info[1])).write_text(as_text(running_opcodes()), encoding="utf-8")
