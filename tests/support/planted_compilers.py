"""Compilers under test without a compiler: one that changes nothing, and ones with a known fault."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from plumbline.oracle.harness.compilers import CompileRequest, CompileStatistics


class PlantedCandidate:
    """A target run inside a context that plants a fault, counted as one graph."""

    def __init__(self, target: Callable[..., Any], fault: Callable[[], AbstractContextManager[Any]]) -> None:
        self.target, self.fault = target, fault
        functools.update_wrapper(self, target)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self.fault():
            return self.target(*args, **kwargs)

    def statistics(self) -> CompileStatistics:
        return CompileStatistics(graphs=1, ops=1)


class PlantedCompiler:
    """Every call of a compiled function runs inside `fault()`; by default nothing is wrong."""

    name = "planted"
    backends: tuple[str, ...] = ("eager",)
    double_backward = True

    def __init__(self, fault: Callable[[], AbstractContextManager[Any]] = nullcontext) -> None:
        self.fault = fault

    def compile(
        self, target: Callable[..., Any], backend: str, request: CompileRequest, *, rng: str
    ) -> PlantedCandidate:
        return PlantedCandidate(target, self.fault)

    def reset(self) -> None:
        pass


class OffByOneCompiler(PlantedCompiler):
    """Every result is one too many."""

    def compile(
        self, target: Callable[..., Any], backend: str, request: CompileRequest, *, rng: str
    ) -> PlantedCandidate:
        return PlantedCandidate(lambda *args: target(*args) + 1, self.fault)
