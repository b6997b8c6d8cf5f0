"""An environment for one package: its own folder of packages in front of those that are installed here, and its tests.

torch is never installed: the one that is here is what is judged.
"""

import os
import site
import subprocess
import tarfile
import venv
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from plumbline.compiler.base.errors import UserError

from .project_list import Project

INSTALL_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class ProjectEnvironment:
    """python: the interpreter that has the package.  folder: from which its tests are run."""

    python: Path
    folder: Path


def prepare(project: Project, work: Path, checkouts: Path | None) -> ProjectEnvironment:
    """Return the environment of a package, made where it is not there yet.

    work: folder of all environments.  checkouts: folder with a git checkout named for each package, for machines that
    cannot reach the repositories.  Raises UserError with the last line of what pip or git said.
    """
    place = work / f"{project.name}-{project.version}"
    python = place / "env" / "bin" / "python"
    done = place / "prepared"
    if not done.exists():
        place.mkdir(parents=True, exist_ok=True)
        _environment(place / "env")
        constraints = place / "constraints.txt"
        constraints.write_text("".join(f"{name}=={metadata.version(name)}\n" for name in ("torch", "numpy", "pytest")))
        wanted = [f"{project.name}=={project.version}", *project.needs]
        _run([str(python), "-m", "pip", "install", "-q", "-c", str(constraints), *wanted], project)
    source = _source(project, place, python, checkouts)
    done.touch()
    return ProjectEnvironment(python, source / project.folder)


def _environment(place: Path) -> None:
    """Make an environment that sees the packages of this one, as its `.pth` files say."""
    venv.create(place, with_pip=True)
    packages = next(place.glob("lib/python*/site-packages"))
    lines = [f"import site; site.addsitedir({folder!r})\n" for folder in site.getsitepackages()]
    (packages / "zz_packages_of_plumbline.pth").write_text("".join(lines))


def _source(project: Project, place: Path, python: Path, checkouts: Path | None) -> Path:
    if project.tests != "sdist" and checkouts is not None and (checkouts / project.name).is_dir():
        return checkouts / project.name
    source = place / "source"
    if source.is_dir():
        return _only_folder(source) if project.tests == "sdist" else source
    if project.tests != "sdist":
        tag = ["--branch", project.tag] if project.tag else []
        _run(["git", "clone", "-q", "--depth", "1", *tag, project.tests, str(source)], project)
        return source
    wanted = f"{project.name}=={project.version}"
    download = [str(python), "-m", "pip", "download", "-q", "--no-deps", "--no-binary", project.name, wanted]
    _run([*download, "-d", str(place / "archive")], project)
    with tarfile.open(next((place / "archive").glob("*.tar.gz"))) as archive:
        archive.extractall(source, filter="data")
    return _only_folder(source)


def _only_folder(place: Path) -> Path:
    return next(folder for folder in place.iterdir() if folder.is_dir())


def _run(command: list[str], project: Project) -> None:
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False, env=environment
        )
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        status, last = done.returncode, said[-1] if said else "it said nothing"
    except (OSError, subprocess.TimeoutExpired) as error:
        status, last = 1, str(error)
    if status:
        what = f"{project.name} cannot be prepared"
        hint = f"try it by hand: {' '.join(command)}"
        raise UserError(what, where="plumbline projects", why=last, hint=hint)
