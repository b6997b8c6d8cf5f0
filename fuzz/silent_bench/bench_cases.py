"""The cases of SilentBench: what is known of each program, read from `cases.toml`, and what a judge ought to say."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.harness.compilers import LADDER

DATA = Path(__file__).with_name("cases.toml")
PROGRAMS = Path(__file__).with_name("programs")

STOCK = "torch"
_HINT = "see BenchCase in fuzz/silent_bench/bench_cases.py"


class Status(StrEnum):
    """What a compiler is known to do with a program."""

    LIVE = "live"  # a silently wrong answer
    RAISES = "raises"  # an error where eager has an answer: not silent
    FIXED = "fixed"  # right; it was wrong once, or is wrong on another device
    CONTROL = "control"  # right; no fault of this compiler's is known
    UNKNOWN = "unknown"  # nobody ran it there

    @property
    def is_fault(self) -> bool:
        """Return whether the compiler is at fault."""
        return self in (Status.LIVE, Status.RAISES)


@dataclass(frozen=True, slots=True)
class BenchCase:
    """One program.

    name: of its function, after `test_`.  fault: its class, the name of its file.  source: the issue or pull request
    it is written after, "" for our own.  wrong_at: the first backend that is, or was, wrong; "" for a control.
    right_at: a later backend from which on it is right again, nearly always "".  seen_in: what differs first.
    torch: the status by minor version of torch, on a CPU.  plumbline: the status of our own compiler.
    note: a sentence, may be empty.  folder: where the file is.
    """

    name: str
    fault: str
    source: str = ""
    wrong_at: str = ""
    right_at: str = ""
    seen_in: str = ""
    torch: Mapping[str, Status] = field(default_factory=dict)
    plumbline: Status = Status.CONTROL
    note: str = ""
    folder: Path = PROGRAMS

    @property
    def file(self) -> Path:
        """Return the file of the program."""
        return self.folder / f"{self.fault}.py"

    @property
    def test(self) -> str:
        """Return the function of the program."""
        return f"test_{self.name}"

    def status(self, compiler: str, version: str) -> Status:
        """Return what the named compiler is known to do under a version of torch, such as `2.13.0+cpu`."""
        if compiler != STOCK:
            return self.plumbline
        return self.torch.get(minor_version(version), Status.UNKNOWN)

    def expected(self, compiler: str, backend: str, version: str) -> bool | None:
        """Return whether a judge of this backend ought to flag the program; None where nobody knows.

        A fault that comes in with a later backend is none here.
        """
        status = self.status(compiler, version)
        if status is Status.UNKNOWN:
            return None
        wrong = LADDER[LADDER.index(self.wrong_at) :] if status.is_fault else ()
        right = LADDER[LADDER.index(self.right_at) :] if self.right_at else ()
        return backend in wrong and backend not in right


def minor_version(version: str) -> str:
    """Return major and minor number of a version of torch."""
    return ".".join(version.split(".")[:2])


def bench_cases(file: Path = DATA) -> tuple[BenchCase, ...]:
    """Return the cases in the order of the data; raises UserError for an entry that cannot be read."""
    faults = tomllib.loads(file.read_text(encoding="utf-8"))
    return tuple(
        _case(name, fault, entry, file) for fault, entries in faults.items() for name, entry in entries.items()
    )


def _case(name: str, fault: str, entry: Mapping[str, Any], file: Path) -> BenchCase:
    try:
        known = {version: Status(status) for version, status in entry.get("torch", {}).items()}
        ours = Status(entry.get("plumbline", Status.CONTROL))
        case = BenchCase(name, fault, **{**entry, "torch": known, "plumbline": ours})
    except (TypeError, ValueError) as error:
        raise UserError(f"the entry of {name} cannot be read", where=str(file), why=str(error), hint=_HINT) from None
    wrong_somewhere = case.plumbline.is_fault or any(status.is_fault for status in known.values())
    if case.wrong_at not in (LADDER if wrong_somewhere else ("", *LADDER)) or case.right_at not in ("", *LADDER):
        raise UserError(f"the entry of {name} has no backend in wrong_at or right_at", where=str(file), hint=_HINT)
    return case
