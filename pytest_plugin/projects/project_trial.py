"""The two runs of one package as a task for an engine: the environment is made, and used, where the task runs."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from plumbline.compiler.base.errors import UserError
from plumbline.minifier.engines.engine_places import find_engine
from plumbline.minifier.engines.task import Bench

from .project_environment import prepare
from .project_list import Project
from .project_run import ProjectResult, run_project


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectTrial:
    """A package to run.

    work: folder of the environments, absolute, made where it is missing.  checkouts: see prepare().
    backends: as pytest's option has them.  seconds: of each of the two runs.
    """

    project: Project
    work: Path
    checkouts: Path | None
    backends: str
    seconds: float

    def run(self, bench: Bench | None = None) -> ProjectResult:
        """Return what the runs show; a package that cannot be prepared is a result too."""
        del bench  # each package has processes of its own
        try:
            made = prepare(self.project, self.work, self.checkouts)
            return run_project(self.project, made, self.work, self.backends, self.seconds)
        except UserError as error:
            return ProjectResult(project=self.project, trouble=error.one_line())


def run_trials(trials: Sequence[ProjectTrial], engine: str) -> Iterator[ProjectResult]:
    """Yield the results in the order of the trials; engine: see find_engine(), "" for this process.

    Raises UserError for an engine that cannot be used.
    """
    if not engine:
        yield from (trial.run() for trial in trials)
        return
    with ExitStack() as engines:
        workers = engines.enter_context(find_engine(engine))
        yield from engines.enter_context(closing(workers.results(trials)))
