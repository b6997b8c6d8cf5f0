"""What a team has accepted by name: known failures, flaky cases, more graph breaks, each with an issue and an end.

The list is a TOML file under version control, whose name is in DEFAULT_FILE below:

    [[accepted]]
    what = "failure"                       # failure, flaky, breaks, compile-time
    test = "test_mlp.py::test_adam"  # may hold * and ?
    column = "torch:inductor"              # may hold * and ?; by default all
    issue = "https://github.com/..."
    expires = 2026-12-31                   # the last day on which it counts
"""

import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

from plumbline.compiler.base.errors import UserError

from ..atomic_file import write_whole

DEFAULT_FILE = "plumbline-accepted.toml"
FAILURE, FLAKY_CASE, BREAKS, COMPILE_TIME = "failure", "flaky", "breaks", "compile-time"
WHATS = (FAILURE, FLAKY_CASE, BREAKS, COMPILE_TIME)
_HINT = 'write [[accepted]] with what = "failure", test, issue and expires = 2026-12-31'


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """One entry: what is accepted, of which cases, why (an issue), and the last day on which it is."""

    what: str
    test: str
    column: str
    issue: str
    expires: date

    def covers(self, what: str, test: str, column: str) -> bool:
        """Return whether this entry is about a case, expired or not."""
        return self.what == what and _fits(test, self.test) and _fits(column, self.column)


def _fits(name: str, pattern: str) -> bool:
    # A parametrized test has brackets, which are a set of characters to fnmatch.
    return name == pattern or fnmatchcase(name, pattern.replace("[", "[[]"))


@dataclass(frozen=True, slots=True)
class Accepted:
    """Everything that is accepted on one day."""

    entries: tuple[Acceptance, ...]
    day: date

    def holding(self, what: str, test: str, column: str) -> Acceptance | None:
        """Return the entry that accepts this today, None without one."""
        found = [entry for entry in self._about(what, test, column) if entry.expires >= self.day]
        return max(found, key=lambda entry: entry.expires, default=None)

    def expired(self, what: str, test: str, column: str) -> Acceptance | None:
        """Return the entry that accepted this until a day that is over, None without one."""
        found = [entry for entry in self._about(what, test, column) if entry.expires < self.day]
        return max(found, key=lambda entry: entry.expires, default=None)

    def _about(self, what: str, test: str, column: str) -> Iterable[Acceptance]:
        return (entry for entry in self.entries if entry.covers(what, test, column))


def read_accepted(file: Path) -> tuple[Acceptance, ...]:
    """Return the entries of a file; UserError, naming the entry, when it is not such a list."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError("cannot read the accepted list", where=str(file), why=why, hint="check its path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError("not a list of accepted cases", where=str(file), why=str(error), hint=_HINT) from None
    entries = data.get("accepted", [])
    if not isinstance(entries, list) or set(data) - {"accepted"}:
        raise UserError("not a list of accepted cases", where=str(file), hint=_HINT)
    return tuple(_entry(entry, f"{file}, entry {number}") for number, entry in enumerate(entries, 1))


def _entry(data: object, where: str) -> Acceptance:
    if not isinstance(data, dict):
        raise UserError("not an entry", where=where, hint=_HINT)
    expected = {"what", "test", "column", "issue", "expires"}
    for name in data.keys() - expected:
        raise UserError(f"unknown key {name!r}", where=where, why=f"known: {', '.join(sorted(expected))}", hint=_HINT)
    for name in sorted(expected - {"column"}):
        if name not in data:
            raise UserError(f"{name!r} is missing", where=where, hint=_HINT)
    if data["what"] not in WHATS:
        raise UserError(f"unknown what = {data['what']!r}", where=where, why=f"known: {', '.join(WHATS)}", hint=_HINT)
    expires = data["expires"]
    if type(expires) is not date:
        raise UserError("'expires' is no date", where=where, why=repr(expires), hint="write expires = 2026-12-31")
    if not str(data["issue"]).strip():
        raise UserError("'issue' is empty", where=where, hint="say where the repair is tracked")
    return Acceptance(
        what=str(data["what"]),
        test=str(data["test"]),
        column=str(data.get("column", "*")),
        issue=str(data["issue"]),
        expires=expires,
    )


def append_failures(
    file: Path,
    known: Sequence[Acceptance],
    cases: Sequence[tuple[str, str]],
    pattern: str,
    issue: str,
    expires: date,
) -> int:
    """Add failing cases (test, column) whose test fits the pattern and that no entry covers; return how many."""
    accepted = Accepted(tuple(known), date.today())
    new = [case for case in cases if _fits(case[0], pattern) and accepted.holding(FAILURE, *case) is None]
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    for test, column in new:
        lines = [f'what = "{FAILURE}"', f"test = {_quoted(test)}", f"column = {_quoted(column)}"]
        lines += [f"issue = {_quoted(issue)}", f"expires = {expires.isoformat()}"]
        text += "\n".join(["" if text else "# Accepted by name, until a date.", "[[accepted]]", *lines, ""])
    if new:
        write_whole(file, text)
    return len(new)


def _quoted(text: str) -> str:
    # JSON's strings are basic strings of TOML, but for DEL, which TOML wants escaped, and for escapes in pairs.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
