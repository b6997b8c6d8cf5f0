"""A script or test bisected under stock `torch.compile`: the whole program is run for each answer."""

from collections.abc import Callable

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.verdict import Verdict

from ..cases.case_run import run_node, run_script
from ..cases.failing_calls import FailureSession
from .bisected_cases import is_like
from .stock_culprit import StockCulprit, stock_culprit_of


def bisect_stock_program(case: str, backend: str, progress: Callable[[str], None] = lambda _: None) -> StockCulprit:
    """Return the culprit of the first failing call of a script or test; raises UserError where nothing fails."""
    first: list[Verdict] = []

    def ask(chosen: str) -> bool:
        session = FailureSession("torch", chosen, lambda _: None, isolated=False)
        (run_node if "::" in case else run_script)(case, session)
        failure = session.failure
        progress(f"{'passes' if failure is None else 'fails '}  torch:{chosen}")
        if failure is None:
            return False
        first[:] = first or [failure.verdict]
        return is_like(failure.verdict, first[0])

    culprit = stock_culprit_of(ask, backend)
    if culprit is None:
        raise UserError("nothing to bisect: no judged call fails", where=case, hint="give a case that fails")
    return culprit
