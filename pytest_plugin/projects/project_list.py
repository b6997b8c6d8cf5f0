"""The list of packages whose tests are run, read from a TOML file."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from plumbline.compiler.base.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One package and the sample of its tests.

    name: as pip knows it.  version: exact.  needs: further packages that its tests import.
    tests: where they are: "sdist" (pip's source archive), or the address of a git repository; tag: of that.
    folder: from which pytest runs, below the source.  sample: paths or node ids there.
    options: of pytest.  brief: those for a short run, in their place.  environment: variables.
    known: what is found in it, as sentences.
    """

    name: str
    version: str
    tests: str
    sample: tuple[str, ...]
    tag: str = ""
    folder: str = "."
    needs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    brief: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    known: tuple[str, ...] = ()


def read_projects(place: Path) -> list[Project]:
    """Return the packages of a list; raises UserError that names the entry and field for one that cannot be read."""
    hint = "see tests/projects.toml in the sources of plumbline"
    try:
        entries = tomllib.loads(place.read_text("utf-8")).get("project", [])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError("the list of projects cannot be read", where=str(place), why=str(error), hint=hint) from None
    return [_project(entry, f"{place}, entry {number}", hint) for number, entry in enumerate(entries, 1)]


def chosen_projects(projects: Sequence[Project], names: Sequence[str]) -> list[Project]:
    """Return the projects of these names, all without names; raises UserError for an unknown name."""
    known = {project.name: project for project in projects}
    for name in names:
        if name not in known:
            why = f"available: {', '.join(known)}"
            raise UserError(f"unknown project {name!r}", where="plumbline projects", why=why, hint="name one of these")
    return [known[name] for name in names] or list(projects)


def shortened(project: Project) -> Project:
    """Return a project with fewer tests, where its entry names them."""
    return replace(project, options=project.brief or project.options)


def _project(entry: Mapping[str, Any], where: str, hint: str) -> Project:
    allowed = {each.name for each in fields(Project)}
    missing = {"name", "version", "tests", "sample"} - set(entry)
    for name in [*sorted(set(entry) - allowed), *sorted(missing)]:
        what = f"the field {name!r} is {'missing' if name in missing else 'unknown'}"
        raise UserError(what, where=where, why=f"fields: {', '.join(sorted(allowed))}", hint=hint)
    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    return Project(**given)
