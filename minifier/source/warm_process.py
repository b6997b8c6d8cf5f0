"""A warm process that runs candidate programs: everything is loaded in it, and it forks once for each of them.

The command's own process is no place to fork from: it has run the user's program, and pools of threads that no child
would have.  This one has run one tiny program of ours on one thread, so that nothing is imported twice, and a candidate
finds what it would find in a fresh interpreter.
"""

import contextlib
import importlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Self, cast

import torch

from plumbline.compiler.base.errors import PlumblineError
from plumbline.oracle.state.scope import seed_everything
from plumbline.oracle.verdict import VerdictKind

from ..cases.failing_calls import NO_RETURN, failing_call
from ..failure_signature import FailureSignature
from ..sandbox import in_child
from .source_run import CompiledMark, RunReport, SourceSettings, run_source

_SERVE = "from plumbline.minifier.source.warm_process import serve; serve()"
PROGRAM_FILE = "program.py"
"""Name of a candidate's file: frames, caches and messages must not depend on which candidate it is."""


class WarmProcessLost(PlumblineError):
    """The warm process itself ended, which no candidate should be able to bring about."""


class WarmProcess:
    """The parent's end.  Use it as a context; `ask` runs one program.

    variables: of its environment, where they are to be others than here; None for one that is not to be set.
    """

    def __init__(self, variables: Mapping[str, str | None] | None = None) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._variables = variables or {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; the next question starts another one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def ask(self, text: str, settings: SourceSettings) -> RunReport:
        """Run one program in a child of the warm process and return what fails in it."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _send(process.stdin, (text, settings))
            answer = _receive(process.stdout)
        except (EOFError, BrokenPipeError, KeyboardInterrupt) as error:
            self.close()
            if isinstance(error, KeyboardInterrupt):
                raise
            raise WarmProcessLost("the process that runs candidates ended", hint="run the command again") from None
        assert isinstance(answer, RunReport)
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            # Stock's threads that compile do not live in a fork: a child of this process would wait for them for ever.
            chosen = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1", **self._variables}
            # Ours, for the process is killed, and what is killed tidies nothing up.
            self._folder = tempfile.TemporaryDirectory(prefix="plumbline-source-", ignore_cleanup_errors=True)
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVE, self._folder.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if os.environ.get("PLUMBLINE_MINIFIER_DEBUG") else subprocess.DEVNULL,
                env={name: value for name, value in chosen.items() if value is not None},
                start_new_session=True,  # Ctrl-C is for the command, which then says what it has
            )
        return self._process


def _send(pipe: IO[bytes], value: object) -> None:
    data = pickle.dumps(value)
    pipe.write(len(data).to_bytes(8, "little") + data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> object:
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError
    return pickle.loads(pipe.read(int.from_bytes(head, "little")))


def serve() -> None:
    """Answer questions until the pipe is closed; the warm process' own end, whose argument is its folder."""
    questions = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    warmed: set[str] = set()
    folder = sys.argv[1]
    while True:
        try:
            text, settings = _question(questions)
        except EOFError:
            return
        if settings.compiler not in warmed:
            warmed.add(settings.compiler)
            _load(settings)
        if not warmed.issuperset(settings.preload):
            _import(settings, [name for name in settings.preload if name not in warmed])
            warmed.update(settings.preload)
        _send(answers, answered(folder, text, settings))


def _question(pipe: IO[bytes]) -> tuple[str, SourceSettings]:
    text, settings = cast("tuple[str, SourceSettings]", _receive(pipe))
    return text, settings


def _load(settings: SourceSettings) -> None:
    """Import what every candidate will import anyway of the compiler."""
    with contextlib.suppress(Exception):
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # no pool of threads that a fork would lack
        backend = settings.backend if settings.compiler == "torch" else "inductor"  # which needs all that others need
        failing_call(_tiny, (torch.ones(2),), {}, compiler=settings.compiler, backend=backend)
        torch.set_num_threads(threads)
    seed_everything(settings.seed)


def _import(settings: SourceSettings, modules: list[str]) -> None:
    """Import modules as the program, whose folder is searched first, would."""
    sys.path[:0] = [settings.folder] if settings.folder else []
    for module in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    sys.path[:] = [entry for entry in sys.path if entry != settings.folder]
    seed_everything(settings.seed)


def _tiny(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() + 1).sum()


def answered(folder: str, text: str, settings: SourceSettings) -> RunReport:
    """Run a program, in children of this process, as often as the settings say and until it fails.

    folder: for its file and its caches; nothing is left there.
    """
    file = Path(folder) / PROGRAM_FILE
    file.write_text(text, encoding="utf-8")
    report = RunReport(None, "not run")
    for _ in range(settings.repeat):
        with _empty_caches(folder):
            report = _answered_once(str(file), settings)
            if settings.warm and report.signature is None:
                report = _answered_once(str(file), settings)
        if report.signature is not None or report.own_error:
            break
    return report


CACHE_VARIABLES = ("PLUMBLINE_CACHE_DIRECTORY", "TORCHINDUCTOR_CACHE_DIR")
"""Where the compilers keep what they built."""


@contextlib.contextmanager
def _empty_caches(folder: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in CACHE_VARIABLES}
    with tempfile.TemporaryDirectory(prefix="caches-", dir=folder, ignore_cleanup_errors=True) as caches:
        os.environ.update(dict.fromkeys(CACHE_VARIABLES, caches))
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def _answered_once(file: str, settings: SourceSettings) -> RunReport:
    phase = CompiledMark()
    try:
        outcome = in_child(lambda: run_source(file, settings, phase), settings.seconds, threads=settings.threads)
    except RuntimeError as error:
        return RunReport(None, str(error)[:300], own_error=str(error)[:300])
    if outcome.value is not None:
        return outcome.value
    sentence = NO_RETURN if outcome.death == "hang" else f"the process ends by {outcome.death}"
    if not phase.compiled:
        return RunReport(None, sentence, own_error=f"{sentence}, not in compiled code")
    signature = FailureSignature(VerdictKind.CRASH.value, "exceptions", "run", outcome.death)
    return RunReport(signature, sentence)
