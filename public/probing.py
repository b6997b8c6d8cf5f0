"""Run another program without trusting it: it may be missing, fail, or never end."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of running a program: its exit status (None when it had none), output, and what went wrong."""

    status: int | None
    output: str
    trouble: str

    @property
    def good(self) -> bool:
        """Return whether it ran and said 0."""
        return self.status == 0


def attempt(command: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float) -> ProbeResult:
    """Run a command in a folder; after `seconds` it is killed with all processes it started."""
    try:
        process = subprocess.Popen(
            list(command),
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return ProbeResult(None, "", f"{command[0]} cannot be started: {error.strerror or error}")
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _kill_all(process)
        return ProbeResult(None, "", f"{command[0]} did not end within {seconds:g} s")
    trouble = "" if process.returncode == 0 else f"{command[0]} {_ending(process.returncode)}: {_telling(output)}"
    return ProbeResult(process.returncode, output, trouble)


def _kill_all(process: "subprocess.Popen[str]") -> None:
    with suppress(OSError):  # it may have ended by now
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _ending(status: int) -> str:
    if status >= 0:
        return f"exits with {status}"
    with suppress(ValueError):
        return f"dies of {signal.Signals(-status).name}"
    return f"dies of signal {-status}"


def _telling(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower()]
    return (telling or lines or ["no output"])[0][:200]
