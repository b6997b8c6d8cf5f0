"""The file of known failures: each is expected, strictly, so that the file cannot say more than is true."""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.verdict import VerdictKind
from plumbline.reports.atomic_file import write_whole
from plumbline.reports.rows import CaseRow

_HEAD = """\
# Tests whose compiled code is known to be wrong: each has to stay so, or its entry has to go.
# Written by pytest --compile-known=FILE --compile-update-known; a reason may be edited.
"""


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """One entry: a test under one variant, the verdict it has, and why."""

    test: str
    under: str
    verdict: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class KnownFailures:
    """All entries of a file.  update: the file is about to be written, so that nothing is expected strictly."""

    place: Path | None = None
    update: bool = False
    entries: Mapping[tuple[str, str], KnownFailure] = field(default_factory=dict)

    def reason(self, test: str, under: str) -> str | None:
        """Return why this is expected to be wrong, with how to remove the entry; None where it is not expected."""
        entry = self.entries.get((test, under))
        if entry is None or self.place is None:
            return None
        return (
            f"known failure ({entry.reason or entry.verdict}); where it passes, take its entry out of "
            f"{self.place.name}, or run with --compile-update-known"
        )


def read_known(place: Path | None, *, update: bool) -> KnownFailures:
    """Return the entries of a file; raises UserError for one that cannot be read, or is missing without `update`."""
    if place is None:
        return KnownFailures()
    hint = "write it with --compile-update-known"
    try:
        data = tomllib.loads(place.read_text("utf-8"))
    except FileNotFoundError:
        if update:
            return KnownFailures(place, update)
        raise UserError("no such file of known failures", where=str(place), hint=hint) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError("the known failures cannot be read", where=str(place), why=str(error), hint=hint) from None
    entries: dict[tuple[str, str], KnownFailure] = {}
    for number, each in enumerate(data.get("known", ()), 1):
        unknown = set(each) - set(KnownFailure.__dataclass_fields__)
        if unknown or "test" not in each or "under" not in each:
            why = f"entry {number} has {', '.join(sorted(unknown)) or 'no test or no `under`'}"
            raise UserError("the known failures cannot be read", where=str(place), why=why, hint=hint)
        entry = KnownFailure(**{name: str(value) for name, value in each.items()})
        entries[entry.test, entry.under] = entry
    return KnownFailures(place, update, entries)


def updated(known: KnownFailures, cases: Sequence[CaseRow]) -> list[KnownFailure]:
    """Return the entries after a run: those of tests that did not run stay, with the reasons that people wrote."""
    entries = dict(known.entries)
    for case in cases:
        key = (case.test, case.column)
        if case.outcome == "skipped":
            continue
        if case.verdict and VerdictKind(case.verdict).fails:
            old = entries.get(key)
            reason = old.reason if old is not None and old.verdict == case.verdict else f"{case.where}: {case.sentence}"
            entries[key] = KnownFailure(case.test, case.column, case.verdict, " ".join(reason.split())[:200])
        else:
            entries.pop(key, None)
    return sorted(entries.values(), key=lambda entry: (entry.test, entry.under))


def write_known(place: Path, entries: Iterable[KnownFailure]) -> None:
    """Write the file; raises OSError."""
    write_whole(place, _HEAD + "".join(map(_block, entries)))


def _block(entry: KnownFailure) -> str:
    # Strings of JSON are strings of TOML.
    values = {name: json.dumps(getattr(entry, name), ensure_ascii=False) for name in KnownFailure.__dataclass_fields__}
    return "\n[[known]]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())
