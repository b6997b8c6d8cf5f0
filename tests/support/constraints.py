"""Print constraints.txt for the packages of this environment: `python tests/support/constraints.py > constraints.txt`.

Walks the requirements in pyproject.toml, with the dev and hf extras, as they are installed here, and pins each;
versions are written without their local part (+cpu), so that they hold for every build.
"""

import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
HEADER = """\
# Exact versions that ./run installs, made by tests/support/constraints.py from an environment in which all is green.
# They name no build: whether torch comes for CPU or CUDA is pip's configuration.
"""


def own_requirements(extras: tuple[str, ...]) -> list[str]:
    """Return what pyproject.toml asks for with these extras, and the build tool."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    optional = settings["project"]["optional-dependencies"]
    wanted = settings["project"]["dependencies"] + settings["build-system"]["requires"]
    return wanted + [requirement for extra in extras for requirement in optional[extra]]


def pins(requirements: list[str]) -> dict[str, str]:
    """Return name -> public version of everything that these requirements need here."""
    found: dict[str, str] = {}
    waiting = [Requirement(text) for text in requirements]
    done = set()
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras) | {""}
        if (name, extras) in done:
            continue
        done.add((name, extras))
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # needed on another platform or Python only
        found[name] = package.version.partition("+")[0]
        for needed in map(Requirement, package.requires or []):
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(needed)
    return found


def main() -> None:
    """Print the file."""
    print(
        HEADER
        + "\n".join(f"{name}=={version}" for name, version in sorted(pins(own_requirements(("dev", "hf"))).items()))
    )


if __name__ == "__main__":
    main()
