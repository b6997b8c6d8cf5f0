"""The culprit of a stock failure, with made answers: which switch is in force decides whether the case fails."""

from collections.abc import Callable

import pytest

from plumbline.minifier.bisect.stock_culprit import stock_culprit_of
from plumbline.oracle.harness import stock_torch
from plumbline.oracle.harness.stock_torch import StockSwitches


def fails_where(condition: Callable[[str, StockSwitches], bool]) -> Callable[[str], bool]:
    return lambda backend: condition(backend, stock_torch._SWITCHES[-1])


def test_a_case_that_is_right_without_the_caches_names_the_cache() -> None:
    def wrong(backend: str, switches: StockSwitches) -> bool:
        kept = switches.caches and ("inductor", "fx_graph_cache") not in switches.options
        return backend == "inductor" and kept and not switches.without_inductor

    culprit = stock_culprit_of(fails_where(wrong))
    assert culprit is not None
    assert (culprit.backend, culprit.option) == ("inductor", ("inductor", "fx_graph_cache", False))
    assert culprit.reproduced


@pytest.mark.parametrize("guilty", [("inductor", "cpp.simdlen", 1), ("inductor", "pattern_matcher", False)])
def test_an_option_that_mends_the_case_alone_is_named(guilty: tuple[str, str, object]) -> None:
    def wrong(backend: str, switches: StockSwitches) -> bool:
        return backend == "inductor" and not switches.without_inductor and guilty[:2] not in switches.options

    culprit = stock_culprit_of(fails_where(wrong))
    assert culprit is not None
    assert culprit.option == guilty
    assert culprit.reproduced


def test_the_first_wrong_backend_is_named_where_no_switch_mends_it() -> None:
    culprit = stock_culprit_of(fails_where(lambda backend, _: backend != "eager"))
    assert culprit is not None
    assert (culprit.backend, culprit.option, culprit.application) == ("aot_eager", None, None)


def test_a_case_that_never_fails_has_no_culprit() -> None:
    assert stock_culprit_of(lambda _: False) is None
