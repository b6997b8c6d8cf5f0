"""All planted kinds: importing this file enters those of every file beside it."""

import importlib
import tomllib
from pathlib import Path

from support.planted_kinds.planted_scene import KINDS, PlantedKind

_HERE = Path(__file__).resolve().parent
MISSES = _HERE.parents[1] / "oracle" / "planted" / "known_misses.toml"


def all_kinds() -> dict[str, PlantedKind]:
    """Return all kinds by key."""
    for path in sorted(_HERE.glob("kinds_of_*.py")):
        importlib.import_module(f"support.planted_kinds.{path.stem}")
    return KINDS


def known_misses() -> dict[str, str]:
    """Return the kinds that the judge does not find, each with the reason."""
    return {str(key): str(reason) for key, reason in tomllib.loads(MISSES.read_text()).items()}
