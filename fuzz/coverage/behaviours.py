"""Behaviour as short texts, `family: what`: what an example would reach, and what our compiler did with it.

operators: of eager, by the type of their first tensor; and those in the graphs of each stage, by the type of what they
give.  opcodes: pairs of neighbours in the bytecode.  guards: kinds, without the names of the program.
breaks, recompiles, passes, fallbacks, fusions: by reason, rule or name.
"""

import dis
import functools
import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import CodeType
from typing import Any

import torch

from plumbline.compiler.base.events import (
    Artifact,
    BackendCalled,
    Broke,
    Captured,
    Event,
    FellBack,
    FusionRefused,
    PassDone,
    RanEagerly,
    Recompiled,
    listen,
)
from plumbline.compiler.base.torch_facts import DispatchMode

Behaviours = frozenset[str]

FAMILIES = ("operators", "opcodes", "guards", "breaks", "recompiles", "passes", "fallbacks", "fusions", "changes")


def opcode_pairs(source: str) -> Behaviours:
    """Return the pairs of neighbouring opcodes in a text of Python; none where it does not compile."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = compile(source, "<fuzz program>", "exec")
    except (SyntaxError, ValueError):
        return frozenset()
    found: set[str] = set()
    todo = [constant for constant in whole.co_consts if isinstance(constant, CodeType)]
    while todo:
        code = todo.pop()
        names = [instruction.opname for instruction in dis.get_instructions(code)]
        found.update(f"opcodes: {one} {other}" for one, other in itertools.pairwise(names))
        todo += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(found)


class _Watching(DispatchMode):
    """Notes the operators that run, with the type of their first tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensor = next((one for one in args if isinstance(one, torch.Tensor)), None)
        kind = str(tensor.dtype).removeprefix("torch.") if tensor is not None else "nothing"
        self.found.add(f"operators: {func} {kind} eager")
        return func(*args, **(kwargs or {}))


def operators_run(run: Callable[[], object]) -> Behaviours:
    """Return the operators that a function runs; what it raises is no matter."""
    watching = _Watching()
    with warnings.catch_warnings(), watching:
        warnings.simplefilter("ignore")
        with suppress(Exception):
            run()
    return frozenset(watching.found)


@contextmanager
def reached_behaviours() -> Iterator[set[str]]:
    """Collect what our compiler does inside the block; another compiler is not listened to."""
    found: set[str] = set()

    def note(event: Event) -> None:
        tell = _TOLD.get(type(event))
        if tell is not None:
            found.update(tell(event))

    stop = listen(note)
    try:
        yield found
    finally:
        stop()


_CAPTURED = re.compile(r'^\s*\w+: "(\w+)\[[^"]*" = ([\w.]+)', re.MULTILINE)
_TRACED = re.compile(r"= torch\.ops\.(\w+\.\w+\.\w+)\(.*# (\w+)\[", re.MULTILINE)
_LOOPED = re.compile(r"\bop\.(\w+)\((?:'(\w+)')?")


def _of_graph(event: BackendCalled) -> Iterator[str]:
    for kind, called in _CAPTURED.findall(event.text):
        yield f"operators: {called.rpartition('.')[2]} {kind} capture"


def _of_artifact(event: Artifact) -> Iterator[str]:
    if event.stage == "autograd" and event.name in ("forward", "backward"):
        for called, kind in _TRACED.findall(event.text):
            yield f"operators: {called} {kind} {event.name}"
    elif event.stage == "schedule":
        for called, detail in set(_LOOPED.findall(event.text)):
            yield f"operators: {' '.join(filter(None, (called, detail)))} loops"


_PREDICATES = re.compile(
    r" (?:is a tensor like|is not|is|has type|has length|has the code of|has nothing|has a plain value|has|equals"
    r"|lacks key|lacks attribute|==|in)(?= |$)"
)
_ITEM = re.compile(r"\[[^\]]*\]")
_ATTRIBUTE = re.compile(r"\.\w+")


@functools.lru_cache(4096)
def guard_kind(guard: str) -> str:
    """Return a guard without the names and values of the program: `name.attribute[item] equals`."""
    found = _PREDICATES.search(guard)
    if found is None:
        return re.sub(r"\w+", "name", guard, count=1)[:60]
    place, predicate = guard[: found.start()], found.group().strip()
    if place.endswith("()"):
        return f"{place} {predicate}"
    shape = _ATTRIBUTE.sub(".attribute", _ITEM.sub("[item]", place))
    shape = re.sub(r"^\w+", "name", shape)
    return f"{shape[:60]} {predicate}"


def _of_capture(event: Captured) -> Iterator[str]:
    for guard in event.guards:
        yield f"guards: {guard_kind(guard)}"


def _of_pass(event: PassDone) -> Iterator[str]:
    if event.before != event.after:
        yield f"passes: {event.stage} {event.name}"


_TOLD: dict[type[Event], Callable[[Any], Iterator[str]]] = {
    BackendCalled: _of_graph,
    Artifact: _of_artifact,
    Captured: _of_capture,
    PassDone: _of_pass,
    Broke: lambda event: iter((f"breaks: {event.reason}",)),
    RanEagerly: lambda event: iter((f"breaks: {event.reason}, whole function",)),
    Recompiled: lambda event: iter((f"recompiles: {guard_kind(event.guard)}",)),
    FellBack: lambda event: iter((f"fallbacks: {event.operation}",)),
    FusionRefused: lambda event: iter((f"fusions: {event.rule}",)),
}
