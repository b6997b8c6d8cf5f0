"""The proof of a script: it runs in fresh processes, and is put in its place only if it reproduces."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from plumbline.compiler.base.errors import UserError
from plumbline.reports.atomic_file import write_whole

from ..failure_signature import FailureSignature
from .repro_script import Script

RUN_SECONDS = 900.0
"""One run of a script: an import of torch and one compile."""
HANG_SECONDS = 30.0
"""One run of a script that does not return."""
REPRODUCES = 1


@dataclass(frozen=True, slots=True)
class Proof:
    """count: runs that showed the failure.  sentence: the last line of the first run that did not."""

    holds: bool
    count: int
    sentence: str


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """A script and the place it is meant for."""

    place: Path
    script: Script

    def write_to(self, folder: Path) -> Path:
        """Write script and inputs into a folder and return the script's path."""
        file = folder / self.place.name
        file.write_text(self.script.text, encoding="utf-8")
        if self.script.blob is not None:
            _inputs_beside(file).write_bytes(self.script.blob)
        return file

    def put_in_place(self) -> None:
        """Write the inputs and then the script, each whole or not at all; raises UserError if that fails."""
        beside = _inputs_beside(self.place)
        if self.script.blob is not None:
            part = beside.with_name(f".{beside.name}.part")
            try:
                beside.parent.mkdir(parents=True, exist_ok=True)
                part.write_bytes(self.script.blob)
                os.replace(part, beside)
            except OSError as error:
                part.unlink(missing_ok=True)
                raise _refused(beside, error) from None
        write_whole(self.place, self.script.text)
        if self.script.blob is None:
            beside.unlink(missing_ok=True)  # of an earlier script of this name


def _inputs_beside(script: Path) -> Path:
    return script.with_name(f"{script.name.removesuffix('.py')}.inputs.pt")


def check_place(place: Path) -> None:
    """Raise UserError unless a script can be written there; nothing is left behind."""
    if place.suffix != ".py":
        raise UserError("the script must be a .py file", where=str(place), hint="write for example --out repro.py")
    if place.is_dir():
        raise UserError("cannot write", where=str(place), why="it is a directory", hint="choose another --out")
    folder = next(parent for parent in place.absolute().parents if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _refused(place, error) from None


def _refused(place: Path, error: OSError) -> UserError:
    return UserError("cannot write", where=str(place), why=error.strerror or str(error), hint="choose another --out")


def prove(written: ScriptFile, times: int, signature: FailureSignature) -> Proof:
    """Run the script in `times` fresh processes, with a cache folder of their own; stop at the first that differs."""
    dead = signature.exception if signature.is_exception and signature.exception.startswith("SIG") else ""
    with tempfile.TemporaryDirectory(prefix="plumbline-proof-", ignore_cleanup_errors=True) as folder:
        script = written.write_to(Path(folder))
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache"}
        for number in range(times):
            status, said = _run(script, environment, hang=signature.hangs)
            if not (status == REPRODUCES or (dead and status < 0)):
                return Proof(False, number, f"run {number + 1} of {times} ends with status {status}: {said}")
    return Proof(True, times, "")


def _run(script: Path, environment: dict[str, str], *, hang: bool) -> tuple[int, str]:
    command = [sys.executable, script.name]
    limit = HANG_SECONDS if hang else RUN_SECONDS
    try:
        done = subprocess.run(
            command, cwd=script.parent, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return REPRODUCES if hang else -1, "it does not return"
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return done.returncode, lines[-1][:300] if lines else "it prints nothing"
