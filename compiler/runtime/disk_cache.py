"""The disk cache of built kernels: content-addressed, replaced whole, checked before use.

An entry is two files named by the key: what was built and its checksum.  Both are written to a temporary name and
renamed, the checksum last, so a reader sees a whole entry or none.  Nothing here raises for a broken folder: reading
gives None and writing gives the reason.

A library is code that will run, and its checksum lies beside it, so the checksum proves nothing about who wrote it.
Therefore folders are made for their owner alone, and only regular files of this user (or of root, who may fill a
cache for everybody) in folders that nobody else can write to are loaded.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

VERSION = "v1"


@dataclass(frozen=True, slots=True)
class DiskCache:
    """A folder of built kernels; suffix: of the file that holds one."""

    root: Path
    suffix: str = ".so"

    def path(self, key: str) -> Path:
        """Return where what was built for a key stands."""
        return self.root / VERSION / key[:2] / f"{key}{self.suffix}"

    def find(self, key: str) -> Path | None:
        """Return what was built for a key if it is there, whole, and nobody else's."""
        path = self.path(key)
        checksum = path.with_suffix(".sha256")
        try:
            if self.refusal(path) or any(_refusal(file, file.lstat(), stat.S_ISREG) for file in (path, checksum)):
                return None
            expected = checksum.read_text().strip()
            actual = hashlib.sha256(path.read_bytes()).hexdigest()
        except (OSError, ValueError):
            return None
        return path if expected == actual else None

    def keep(self, key: str, built: Path) -> tuple[Path | None, str]:
        """Copy a built file into the cache; returns (its place, "") or (None, the reason it is not kept)."""
        try:
            content = built.read_bytes()
        except OSError as error:
            return None, f"{built}: {error.strerror or error}"
        return self.keep_content(key, content)

    def keep_content(self, key: str, content: bytes) -> tuple[Path | None, str]:
        """Put what was built into the cache; returns as `keep`."""
        path = self.path(key)
        try:
            for folder in self._folders(path):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if reason := self.refusal(path):
                return None, reason
            _replace(path, content)
            _replace(path.with_suffix(".sha256"), hashlib.sha256(content).hexdigest().encode())
        except OSError as error:
            return None, f"{path.parent}: {error.strerror or error}"
        return path, ""

    def refusal(self, path: Path) -> str:
        """Return in one line why the folders of an entry may not be used; "" if they may.

        A folder of this user that others can write to is closed to them.  Raises OSError where one cannot be read.
        """
        for folder in self._folders(path):
            status = folder.stat() if folder == self.root else folder.lstat()  # the user may link the root elsewhere
            if status.st_uid == os.geteuid() and status.st_mode & _OTHERS_WRITE:
                folder.chmod(0o700)  # what others had put into it still belongs to them
            elif reason := _refusal(folder, status, stat.S_ISDIR):
                return reason
        return ""

    def _folders(self, path: Path) -> tuple[Path, ...]:
        return self.root, self.root / VERSION, path.parent


_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def _refusal(path: Path, status: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    """Return in one line why a file or folder may not be used; "" if it may."""
    if not is_kind(status.st_mode):
        return f"{path} is not a regular file or folder"
    if status.st_uid not in (os.geteuid(), 0):
        return f"{path} belongs to another user"
    if status.st_mode & _OTHERS_WRITE:
        return f"{path} can be written by other users; chmod go-w {path}"
    return ""


def _replace(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o600)
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
