"""The disk cache of built kernels: content-addressed, replaced whole, checked before use.

An entry is two files named by the key: the shared object and its checksum.  Both are written to a temporary name and
renamed, the checksum last, so a reader sees a whole entry or none.  Nothing here raises for a broken folder: reading
gives None and writing gives the reason.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

VERSION = "v1"


@dataclass(frozen=True, slots=True)
class DiskCache:
    """A folder of built kernels."""

    root: Path

    def path(self, key: str) -> Path:
        """Return where the shared object of a key stands."""
        return self.root / VERSION / key[:2] / f"{key}.so"

    def find(self, key: str) -> Path | None:
        """Return the shared object of a key if it is there and whole."""
        path = self.path(key)
        try:
            wanted = path.with_suffix(".sha256").read_text().strip()
            found = hashlib.sha256(path.read_bytes()).hexdigest()
        except (OSError, ValueError):
            return None
        return path if wanted == found else None

    def keep(self, key: str, built: Path) -> tuple[Path | None, str]:
        """Copy a built file into the cache; returns (its place, "") or (None, the reason it is not kept)."""
        path = self.path(key)
        try:
            content = built.read_bytes()
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(path, content)
            _replace(path.with_suffix(".sha256"), hashlib.sha256(content).hexdigest().encode())
        except OSError as error:
            return None, f"{path.parent}: {error.strerror or error}"
        return path, ""


def _replace(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def key_of(*parts: str) -> str:
    """Return the key of a text and of everything that changes what it compiles to."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()
