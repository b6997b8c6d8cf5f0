"""Files that are written whole or not at all."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from plumbline.compiler.base.errors import UserError


def write_whole(file: Path, text: str) -> None:
    """Write a text file by a temporary one beside it and a rename; make its directories.

    Raises UserError when the place cannot be written; the file that was there before stays untouched.
    """
    try:
        if file.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        file.parent.mkdir(parents=True, exist_ok=True)
        _replace(file, text)
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError("cannot write", where=str(file), why=why, hint="choose another place") from None


def _replace(file: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name[:40]}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
            out.write(text)
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp makes it private; others should be able to read a report
        os.replace(temporary, file)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
