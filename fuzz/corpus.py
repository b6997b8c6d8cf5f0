"""Failures on disk: one JSON file that replays and one script that stands alone, written whole or not at all."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.verdict import Verdict
from plumbline.reports.atomic_file import write_whole

from .findings import FuzzSignature
from .program_data import to_plain

FORMAT = 1
DEFAULT_FOLDER = ".plumbline/fuzz"


@dataclass(frozen=True, slots=True)
class SavedFailure:
    """The content of a file: the fuzzer that wrote it, the compiler that failed, and the example as plain data."""

    mode: str
    compiler: str
    backend: str
    signature: str
    example: Any


def prepare_folder(folder: Path) -> None:
    """Make the folder and try to write in it; raises UserError before any time is spent on a campaign."""
    trial = folder / ".writable"
    write_whole(trial, "")
    trial.unlink()


def save(
    folder: Path, signature: FuzzSignature, example: object, script: str, verdict: Verdict, place: tuple[str, str, str]
) -> Path:
    """Write the JSON file and the script beside it, and return the JSON file; place: mode, compiler, backend."""
    mode, compiler, backend = place
    data = {
        "plumbline_fuzz": FORMAT,
        "mode": mode,
        "compiler": compiler,
        "backend": backend,
        "signature": str(signature),
        "sentence": verdict.sentence,
        "example": to_plain(example),
    }
    file = folder / f"{signature.name}.json"
    write_whole(file, json.dumps(data, indent=1) + "\n")
    write_whole(file.with_suffix(".py"), script)
    return file


def load(file: Path) -> SavedFailure:
    """Read a saved failure; raises UserError for any other file."""
    hint = f"give a .json file that plumbline fuzz saved, such as those in {DEFAULT_FOLDER}"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError("cannot read the saved failure", where=str(file), why=error.strerror or "", hint=hint) from None
    except ValueError as error:
        raise UserError("not a saved failure", where=str(file), why=f"not JSON: {error}"[:80], hint=hint) from None
    if not isinstance(data, dict) or data.get("plumbline_fuzz") != FORMAT:
        why = f"no field plumbline_fuzz = {FORMAT}"
        raise UserError("not a saved failure of this version", where=str(file), why=why, hint=hint)
    texts = [data.get(name) for name in ("mode", "compiler", "backend", "signature")]
    if not all(isinstance(text, str) for text in texts):
        raise UserError("not a saved failure", where=str(file), why="a field is missing", hint=hint)
    mode, compiler, backend, signature = map(str, texts)
    return SavedFailure(mode, compiler, backend, signature, data.get("example"))
