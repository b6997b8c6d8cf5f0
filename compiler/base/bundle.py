"""Bundles: an error of the compiler's own, kept on disk as a folder that can be read, sent and run again.

Writing one never fails a call: where the disk cannot be written, there is no bundle and the answer is the same.
"""

import hashlib
import os
import platform
import re
import shutil
import sys
import traceback
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from importlib import metadata
from pathlib import Path

import torch

from .events import CompilerFailed, record
from .locks import ForkedLock
from .options import Options, changed_options, default_cache_directory

_NAME = re.compile(r"\d{8}-\d{6}-\d{6}-\w+-[0-9a-f]{8}")
ABOUT = "error.txt"
REPRO = "repro.py"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of ours. files: further texts of the bundle by file name; place: the user's `file:line`, or empty.

    consequence: what became of the user's call.
    """

    stage: str
    function: str
    place: str
    error: BaseException
    files: Mapping[str, str] = field(default_factory=dict)
    consequence: str = "the function ran eagerly"

    def error_line(self) -> str:
        """Return the error as one line."""
        return f"{type(self.error).__name__}: {self.error}".replace("\n", " ")


@dataclass(slots=True)
class _Written:
    """The bundles of this process by what they are about: the same error is written once."""

    places: dict[str, str] = field(default_factory=dict)
    lock: ForkedLock = field(default_factory=ForkedLock)


_WRITTEN = _Written()


def bundle_directory(options: Options) -> Path:
    """Return the folder of bundles: the option, else `bundles` in the cache folder; here, if the user waits for one."""
    if options.repro_after and not options.bundle_directory:
        return Path("plumbline_repro").absolute()
    return Path(options.bundle_directory) if options.bundle_directory else default_cache_directory(options) / "bundles"


def write_bundle(failure: Failure, options: Options) -> str:
    """Write a bundle and drop the oldest beyond `bundle_limit`; returns its folder, empty where none was written."""
    if options.bundle_limit <= 0:
        return ""
    trace = "".join(traceback.format_exception(failure.error))
    same = hashlib.sha256(f"{failure.stage}\n{failure.function}\n{failure.place}\n{trace}".encode()).hexdigest()[:8]
    root = bundle_directory(options)
    key = f"{root} {same}"
    with _WRITTEN.lock:
        known = _WRITTEN.places.get(key, "")
        if known and Path(known).is_dir():
            return known
        try:
            place = _write(root, same, failure, {ABOUT: _about(failure, options, trace), **failure.files})
            _drop_oldest(root, options.bundle_limit)
        except OSError:  # no disk, no bundle: the call goes on
            return ""
        _WRITTEN.places[key] = str(place)
        return str(place)


def bundles(options: Options) -> list[Path]:
    """Return the bundles that lie on disk, the newest first."""
    root = bundle_directory(options)
    if not root.is_dir():
        return []
    return sorted((item for item in root.iterdir() if _NAME.fullmatch(item.name)), reverse=True)


def _write(root: Path, same: str, failure: Failure, files: Mapping[str, str]) -> Path:
    word = re.sub(r"\W+", "_", f"{failure.function}_{failure.stage}")[:60]
    now = datetime.now().strftime("%Y%m%d-%H%M%S-%f")  # names sort by age
    place = root / f"{now}-{word}-{same}"
    temporary = root / f".{place.name}.{os.getpid()}"
    temporary.mkdir(parents=True)
    for name, text in files.items():
        (temporary / name).write_text(text, encoding="utf-8")
    temporary.rename(place)
    return place


def _drop_oldest(root: Path, limit: int) -> None:
    bundles = sorted((item for item in root.iterdir() if _NAME.fullmatch(item.name)), reverse=True)
    for item in bundles[limit:]:
        shutil.rmtree(item, ignore_errors=True)


def _about(failure: Failure, options: Options, trace: str) -> str:
    """Return the first text of a bundle: what failed, where, with which versions and options, and the traceback."""
    rows = [
        f"plumbline met an error of its own in {failure.stage} of {failure.function}; {failure.consequence}.",
        failure.error_line(),
        "",
        f"place      {failure.place or 'not known'}",
        f"plumbline  {_version()}",
        f"torch      {torch.__version__}",
        f"python     {sys.version.split()[0]} on {platform.platform()}",
        f"options    {changed_options(options) or 'all defaults'}",
        f"files      {', '.join(failure.files) or 'none besides this one'}",
        "",
    ]
    return "\n".join(rows) + trace


def _version() -> str:
    try:
        return metadata.version("plumbline")
    except metadata.PackageNotFoundError:
        return "unknown"


def record_failure(failure: Failure, options: Options) -> None:
    """Put an error of ours on record, with its bundle."""
    trace = "".join(traceback.format_exception(failure.error))
    place = write_bundle(failure, options)
    if place and options.repro_after:
        _tell(failure, Path(place))
    record(CompilerFailed(failure.stage, failure.function, failure.error_line(), trace, place))


def _tell(failure: Failure, place: Path) -> None:
    """Say where the bundle is that the user has asked for; a program that makes errors of warnings goes on."""
    script = place / REPRO
    what = f"reproduce it with: python {script}" if script.exists() else f"see {place}"
    with suppress(Warning):
        warnings.warn(f"{failure.stage} of {failure.function} failed ({failure.error_line()}); {what}", stacklevel=2)
