"""Make build/links/plumbline: the package as one folder of links, for tools that follow files, not import hooks.

mypy and import-linter cannot look through the editable install's import hook; this tree shows them the layout
that `[tool.setuptools.package-dir]` describes. `python tests/support/link_tree.py` makes or mends it.
"""

import os
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def wanted_links(root: Path) -> dict[str, Path]:
    """Return name in build/links/plumbline -> what it links to: each top folder, and each file of public/."""
    with (root / "pyproject.toml").open("rb") as file:
        folders: dict[str, str] = tomllib.load(file)["tool"]["setuptools"]["package-dir"]
    links = {}
    for package, folder in folders.items():
        if package == "plumbline":
            entries = (e for e in (root / folder).iterdir() if e.name != "__pycache__")
            links.update({entry.name: entry for entry in entries})
        else:
            links[package.removeprefix("plumbline.")] = root / folder
    return links


def make_link_tree(root: Path = ROOT) -> Path:
    """Bring build/links/plumbline to the wanted state and return build/links; links are relative, so it can move."""
    tree = root / "build" / "links" / "plumbline"
    tree.mkdir(parents=True, exist_ok=True)
    wanted = {name: Path(os.path.relpath(target, tree)) for name, target in wanted_links(root).items()}
    for entry in tree.iterdir():
        if entry.is_symlink() and entry.name in wanted and entry.readlink() == wanted[entry.name]:
            del wanted[entry.name]
        elif entry.is_symlink():
            entry.unlink()
    for name, target in wanted.items():
        (tree / name).symlink_to(target)
    return tree.parent


if __name__ == "__main__":
    make_link_tree()
