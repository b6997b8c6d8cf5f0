"""A judge without a compiler: verdicts are planned on the function, so that the plugin's own rules can be tested fast.

In a test under test: `compiled(planned(f, aot_eager="WRONG"))(x)` gives the planned verdict under that backend, EQUAL
elsewhere; `value=` is what "compiled" code returns instead of f's own value.
"""

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, SimpleNamespace
from typing import Any

from plumbline.oracle.harness.compilers import CompileStatistics
from plumbline.oracle.verdict import ErrorStatistics, Finding, Verdict, VerdictKind

COMPILERS = {"torch": ("eager", "aot_eager", "inductor")}


@dataclass(frozen=True)
class FakeCall:
    boundary: str
    index: int
    verdict: Verdict
    user_file: str
    user_line: int
    frame: FrameType | None = None


def planned(fn: Callable[..., Any], *, value: Any = None, **kinds: str) -> Callable[..., Any]:
    """Return fn with a plan: backend name to kind of verdict."""
    copy = functools.wraps(fn)(lambda *args, **kwargs: fn(*args, **kwargs))
    vars(copy).update(plan=kinds, value=value)
    return copy


class FakeSession:
    opened: list["FakeSession"] = []  # noqa: RUF012 - shared on purpose: tests look at every session of a run

    def __init__(
        self, variant: Any, *, boundary: str, options: Any, targets: tuple[str, ...], request: Any = None
    ) -> None:
        self.variant, self.boundary, self.options, self.targets = variant, boundary, options, targets
        self.request, self.learned, self.inside, self.outside = request, False, False, SimpleNamespace(count=0)
        self.has_constructed = self.judges_constructions = False
        self.mode, self.keep_frames, self.calls = "judge", False, []
        self.active = False
        FakeSession.opened.append(self)

    def __enter__(self) -> "FakeSession":
        self.active = True
        return self

    def __exit__(self, *_: object) -> None:
        self.active = False

    def statistics(self) -> CompileStatistics:
        count = sum(call.verdict.kind is not VerdictKind.VACUOUS for call in self.calls)
        return CompileStatistics(count, count * 2)

    def compiled(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            assert self.active, "a judged call outside its session"
            value = fn(*args, **kwargs)
            kind = VerdictKind(getattr(fn, "plan", {}).get(self.variant.backend, "EQUAL"))
            frame = sys._getframe(1)
            while str(frame.f_globals.get("__name__")).startswith("plumbline."):
                frame = frame.f_back
            name = getattr(fn, "__name__", type(fn).__name__)
            self.calls.append(
                FakeCall(
                    name,
                    len(self.calls) + 1,
                    verdict(kind),
                    frame.f_code.co_filename,
                    frame.f_lineno,
                    frame if self.keep_frames and kind.fails else None,
                )
            )
            replaced = getattr(fn, "value", None)
            return value if replaced is None or self.mode == "reference" else replaced

        return call


def verdict(kind: VerdictKind) -> Verdict:
    """Return a verdict of a kind with plausible numbers."""
    if kind is VerdictKind.EQUAL:
        return Verdict(kind, "bitwise equal")
    numbers = ErrorStatistics(25.0, 3.0, 1.5, 25.0, 0.0, (1, 2), 1.25, 1.0, 1.0, 0.25, 0.01) if kind.fails else None
    sentence = f"planned {kind.value}"
    worst = Finding(kind, "values", "output[0]", sentence, numbers)
    return Verdict(kind, sentence, (worst, Finding(kind, "gradients", "gradient of weight", "also planned", None)))
