"""One boundary: a function or module that is compiled and whose calls are judged."""

import inspect
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import FrameType, FunctionType
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from plumbline.compiler.frontend.warmed_packages import warm_packages

from ..judge import Judgement, judge_call, with_findings
from ..judge_options import JudgeOptions
from ..state.children import children_of, class_attributes, fields_of
from ..state.plain_contents import entries_of, items_of
from ..state.walk import Visit, Walk, walk
from ..user_overrides import without_overrides
from ..verdict import Verdict
from .compilers import Candidate, CompileRequest, CompilerUnderTest, CompileStatistics
from .earlier_results import EarlierResults, handed_out_again, leave_to_eager, overwritten, parts_among

ALWAYS_JUDGED = 2
"""The first calls are always judged: the first one compiles, the second meets the state the first left behind."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgedCall:
    """One judged call of a boundary; `frame` is the user's, for a debugger only."""

    boundary: str
    index: int
    verdict: Verdict
    user_file: str
    user_line: int
    frame: FrameType | None = None


@dataclass(slots=True, eq=False)
class Boundary:
    """A callable under judgement, its compiled form, and how often it was called.

    target: what is compiled and what runs as the reference.  label: how a report names it.
    prepare: called before each call with the functions that it reaches; returns whether it gave some other code.
    """

    target: Callable[..., Any]
    label: str
    request: CompileRequest
    compiler: CompilerUnderTest
    backend: str
    options: JudgeOptions
    calls: int = 0
    candidates: dict[str, Candidate] = field(default_factory=dict)
    signatures: set[object] = field(default_factory=set)
    recompiled_unjudged: bool = False
    earlier: EarlierResults = field(default_factory=EarlierResults)
    prepare: Callable[[Iterable[FunctionType]], bool] | None = None

    def candidate(self, rng: str) -> Candidate:
        """Return the compiled program for one source of random numbers, compiled at the first call."""
        if rng not in self.candidates:
            self.candidates[rng] = self.compiler.compile(self.target, self.backend, self.request, rng=rng)
        return self.candidates[rng]

    def statistics(self) -> CompileStatistics:
        """Return what was compiled for this boundary."""
        total = CompileStatistics()
        for candidate in self.candidates.values():
            total += candidate.statistics()
        return total

    def counted(self, verdict: Verdict) -> Verdict:
        """Return a verdict with what was compiled for this boundary so far."""
        total = self.statistics()
        return replace(verdict, graphs=total.graphs, ops=total.ops, breaks=total.breaks, recompiles=total.recompiles)

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Judgement | None:
        """Count a call and judge it if its turn has come; None means that it is to run compiled, unjudged."""
        self.calls += 1
        warm_packages()  # what compilers change in them once per process is no change of this call's
        roots = call_roots(self.target, self.label, args, kwargs)
        reached = self.reach(roots)
        signature = (call_signature(reached), tuple(map(_plain, roots.values())))
        known = signature in self.signatures
        self.signatures.add(signature)
        power_of_two = self.calls & (self.calls - 1) == 0
        like_others = known and self.calls > ALWAYS_JUDGED and not self.recompiled_unjudged
        if like_others and not power_of_two:
            return None
        self.recompiled_unjudged = False
        watched = self.earlier.watch(reached)
        before, eager_gave = self.earlier.containers(), set[int]()
        begun: list[bool] = []

        def compiled(*a: Any, **k: Any) -> Any:
            if not begun:  # eager has run before
                begun.append(True)
                leave_to_eager(watched)
            return self.candidate(self.options.rng)(*a, **k)

        def eager(*a: Any, **k: Any) -> Any:
            result = self.target(*a, **k)
            eager_gave.update(parts_among(result, before))
            return result

        judgement = judge_call(
            eager if before else self.target,  # a failure inside the judge is told best of the target itself
            compiled,
            args,
            kwargs,
            replace(
                self.options,
                double_backward=self.options.double_backward and self.compiler.double_backward,
                # The same kernels were judged with all kinds of backward; what later calls may add is stale state.
                backward_turn=self.calls.bit_length() if like_others else None,
            ),
            roots,
            rejected=lambda *a, **k: self.candidate("native")(*a, **k),
            reached=reached,
        )
        again = parts_among(judgement.result, before) - eager_gave
        found = [*overwritten(watched), *handed_out_again(again, reached)]
        self.earlier.note(judgement.result)
        return replace(judgement, verdict=with_findings(judgement.verdict, found, self.options)) if found else judgement

    def reach(self, roots: Mapping[str, object]) -> Walk:
        """Walk from the roots, with the functions on the way prepared."""
        with without_overrides():
            reached = walk(roots)
            functions = (visit.value for visit in reached.visits if visit.kind == "function")
            return walk(roots) if self.prepare is not None and self.prepare(functions) else reached

    def run_unjudged(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run compiled only; if that recompiles, the next call is judged."""
        candidate = self.candidate(self.options.rng)
        before = candidate.statistics().graphs
        try:
            result = candidate(*args, **kwargs)
            self.earlier.note(result)
            return result
        finally:
            self.recompiled_unjudged = candidate.statistics().graphs > before


def call_roots(
    target: Callable[..., Any], label: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, object]:
    """Name what a call can reach as its author would: arguments by parameter name, the module as `self`."""
    roots: dict[str, object] = argument_names(target, args, kwargs)
    roots[name_apart("self" if isinstance(target, torch.nn.Module) else label, roots)] = target
    if hooks := _hooks_of_all_modules():
        roots[name_apart("hooks of all modules", roots)] = hooks
    return roots


def _hooks_of_all_modules() -> list[object]:
    tables = (table for name, table in vars(torch.nn.modules.module).items() if name.startswith("_global_"))
    return [hook for table in tables if isinstance(table, dict) for hook in table.values() if callable(hook)]


def name_apart(name: str, taken: Container[str]) -> str:
    """Return a name for one of our own things that no argument of the user's has."""
    while name in taken:
        name = f"the {name}"
    return name


def argument_names(target: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, object]:
    """Return arguments by parameter name; positional ones of `*args` as `args[0]`, unknown signatures as `arg0`."""
    function = target.forward if isinstance(target, torch.nn.Module) else target
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return {**{f"arg{number}": arg for number, arg in enumerate(args)}, **kwargs}
    return dict(bound.arguments)


_PLAIN = (int, float, str, bool, type(None))


def call_signature(reached: Walk) -> object:
    """Return what a compiler is likely to specialise on: tensor metadata, constants anywhere in reach, modes.

    A call with a new signature is judged, because it recompiles or ought to.
    """
    parts: list[object] = [torch.is_grad_enabled(), torch.get_default_dtype(), torch.is_autocast_enabled("cpu")]
    parts.extend(_specialised(visit) for visit in reached.visits)
    parts.extend(_plain(binding.namespace.get(binding.name)) for binding in reached.bindings)
    return tuple(parts)


def _specialised(visit: Visit) -> object:
    kind, value = visit.kind, visit.value
    if kind == "tensor" and (value.is_nested or is_lazy(value)):  # it has no sizes that could be asked for
        return type(value), value.dtype, value.requires_grad, str(value.device)
    if kind == "tensor":
        stride = tuple(value.stride()) if value.layout == torch.strided else None
        return tuple(value.shape), stride, value.dtype, value.requires_grad, str(value.device)
    if kind in ("tuple", "list", "deque"):
        return kind, tuple(_plain(item) for item in items_of(value))
    if kind == "dict":
        return kind, tuple((_plain(key), _plain(item)) for key, item in entries_of(value))
    if kind == "object":
        return type(value).__qualname__, tuple((name, _plain(item)) for name, item in fields_of(value))
    if kind == "class":
        return value.__qualname__, tuple((name, _plain(item)) for name, item in class_attributes(value))
    if kind == "cell":
        return tuple(_plain(child) for _, child in children_of("", kind, value))
    if kind == "function":
        return value.__code__.co_name, tuple(_plain(item) for item in value.__defaults__ or ())
    return kind


def _plain(value: object) -> object:
    """Return a constant by value, anything else by its type; its content is visited separately."""
    return (type(value), value) if isinstance(value, _PLAIN) else type(value)
