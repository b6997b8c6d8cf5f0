"""The search: which kind of application is to blame, which one of them, and with which others.

A kind is found by switching all of it off, the latest in the pipeline first: what is later cannot mend what an earlier
stage did wrong, while an earlier one can keep a later fault from being reached.  Of that kind the shortest prefix that
fails ends with the culprit; what it needs of those before it is found by delta debugging (Zeller and Hildebrandt 2002).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plumbline.compiler.base.bisecting.applications import Application
from plumbline.compiler.base.bisecting.switches import KINDS

from .asking import BisectQuestions

# What validated compilation says departs -> the kinds that may be to blame, the likeliest first.
KINDS_OF_STAGE: dict[str, tuple[str, ...]] = {
    "traced graph": ("autograd",),
    "decomposed graph": ("decomposition",),
    "functionalised graph": ("autograd",),
    "graph passes": ("pass",),
    "partition": ("recompute", "autograd"),
    "lowering": ("lowering",),
    "schedule": ("fusion", "inlining", "loop-pass"),
    "generated code": ("vector", "threads", "stash", "reuse", "kernel", "native"),
}
FILE_OF_STAGE = {
    "traced graph": "compiler/autograd/joint.py and compiler/graph/tracer.py",
    "functionalised graph": "compiler/autograd/functionalize.py",
    "partition": "compiler/autograd/partition.py",
    "generated code": "compiler/codegen/",
}
# Where no stage departs the graphs are right as they were captured: it is the capture, or a guard.
COARSE = frozenset({"capture", "autograd", "native"})
"""Kinds that leave out whole stages: there the stage is worth telling."""


@dataclass(frozen=True, slots=True)
class GuiltyApplications:
    """What a search found.

    guilty: the applications that fail together with nothing else of their kind, the last one decisive.
    alone_fails: only they on: it fails.  without_passes: only the last one off: it passes.
    same_rule: further applications of the same rule without which it passes, where one is not enough.
    stage: what validated compilation says; empty where it says nothing.
    """

    guilty: tuple[Application, ...]
    alone_fails: bool
    without_passes: bool
    same_rule: tuple[Application, ...]
    stage: str


def search(questions: BisectQuestions, stage: str) -> GuiltyApplications | None:
    """Return the culprit of a case that fails, or None where it fails with everything switched off as well.

    Raises OutOfQuestions.
    """
    present = {each.kind for each in questions.ask("").applications}
    kind = next((kind for kind in _order(stage, present) if not questions.fails(f"-{kind}")), None)
    if kind is None:
        return None
    guilty, alone = _within(questions, kind)
    last = guilty[-1]
    without = not questions.fails(switched_off([last]))
    others: tuple[Application, ...] = ()
    if not without:
        others = _same_rule(questions, last)
    return GuiltyApplications(guilty, alone, without, others, stage)


def _order(stage: str, present: set[str]) -> list[str]:
    """Return the kinds in the order in which they are suspected."""
    first = KINDS_OF_STAGE.get(stage.partition(":")[0], ("guard", "guards", "capture"))
    latest_first = [
        kind for kind in reversed(KINDS) if kind not in first and kind not in ("native", "autograd", "capture")
    ]
    order = [*first, *latest_first, "native", "autograd", "capture"]
    return [kind for kind in dict.fromkeys(order) if kind in present]


def _within(questions: BisectQuestions, kind: str) -> tuple[tuple[Application, ...], bool]:
    """Return the applications of a kind that fail together, the decisive one last, and whether they do so alone."""
    count = sum(each.kind == kind for each in questions.ask("").applications)
    fewest, most = 1, count
    while fewest < most:  # the shortest prefix that fails; a longer one decides later applications in another way
        middle = (fewest + most) // 2
        if questions.fails(_prefix(kind, middle, count)):
            most = middle
        else:
            fewest = middle + 1
    prefix = [each for each in questions.ask(_prefix(kind, most, count)).applications if each.kind == kind and each.on]
    if not prefix:
        return _listed(questions, kind)[-1:], False
    last = prefix[-1]
    needed = smallest(prefix[:-1], lambda some: questions.fails(switched_on([*some, last])))
    return (*needed, last), questions.fails(switched_on([*needed, last]))


def _listed(questions: BisectQuestions, kind: str) -> tuple[Application, ...]:
    return tuple(each for each in questions.ask("").applications if each.kind == kind)


def _prefix(kind: str, count: int, of: int) -> str:
    return "" if count >= of else f"+{kind}:0-{count - 1}"


def switched_on(some: Sequence[Application]) -> str:
    """Return the switches under which some applications are the only ones of their kind."""
    return ",".join(f"+{each.kind}:#{each.key}" for each in some)


def switched_off(some: Sequence[Application]) -> str:
    """Return the switches under which some applications do not happen."""
    return ",".join(f"-{each.kind}:#{each.key}" for each in some)


def _same_rule(questions: BisectQuestions, last: Application) -> tuple[Application, ...]:
    """Return what is decided by the same rule, if it passes without all of that; a wrong rule is wrong everywhere."""
    kind = _listed(questions, last.kind)
    same = [each for each in kind if each.rule == last.rule]
    if len(same) < 2 or len(same) == len(kind) or questions.fails(switched_off(same)):
        return ()
    return tuple(each for each in same if each.key != last.key)


def smallest(items: Sequence[Application], fails: Callable[[Sequence[Application]], bool]) -> list[Application]:
    """Return some of the items that still fail and of which none can be left out; all of them are known to fail."""
    kept, parts = list(items), 2
    if not kept or fails([]):
        return []
    while len(kept) > 1:
        size = -(-len(kept) // parts)
        pieces = [kept[start : start + size] for start in range(0, len(kept), size)]
        alone = next((piece for piece in pieces if fails(piece)), None)
        if alone is not None:
            kept, parts = list(alone), 2
            continue
        rests = ([each for each in kept if each not in piece] for piece in pieces)
        rest = next((rest for rest in rests if len(pieces) > 2 and fails(rest)), None)
        if rest is not None:
            kept, parts = rest, max(2, len(pieces) - 1)
        elif len(pieces) == len(kept):
            break
        else:
            parts = min(len(kept), 2 * parts)
    return kept
