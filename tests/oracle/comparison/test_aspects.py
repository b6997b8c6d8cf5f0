"""The table of aspects: every row catches a fault planted in its aspect, and a new aspect is one more row."""

import contextlib
import random
import warnings
from pathlib import Path

import pytest
import torch

from plumbline.oracle import JudgeOptions, VerdictKind, check
from plumbline.oracle.comparison import aspects, compare
from plumbline.oracle.comparison.aspects import ASPECTS, Aspect, aspect_names
from plumbline.oracle.comparison.matching import AFTER_ALL, Difference

ROOT = Path(__file__).resolve().parents[3]
X = torch.linspace(-2, 2, 24).reshape(4, 6)


class Strided(torch.autograd.Function):
    """Doubles; the gradient has other strides than eager's."""

    @staticmethod
    def forward(_ctx, x):
        return x * 2

    @staticmethod
    def backward(_ctx, gradient):
        return (gradient * 2).T.contiguous().T


class Halved(torch.autograd.Function):
    """Doubles, with half the gradient."""

    @staticmethod
    def forward(_ctx, x):
        return x * 2

    @staticmethod
    def backward(_ctx, gradient):
        return gradient


class Once(torch.autograd.Function):
    """The square, which refuses gradients of its gradient as compilers do."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        if torch.is_grad_enabled():
            raise RuntimeError("no double backward")
        return gradient * 2 * ctx.saved_tensors[0]


class Filling(torch.autograd.Function):
    """Two numbers doubled; both always have a gradient."""

    @staticmethod
    def forward(_ctx, x, y):
        return x * 2, y * 2

    @staticmethod
    def backward(_ctx, first, second):
        return first * 2, second * 2


class OneForBoth(torch.autograd.Function):
    """Two numbers doubled; the gradient of one is that of the other."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * 2, y * 2

    @staticmethod
    def backward(_ctx, first, second):
        if first is None or second is None:
            return None if first is None else first * 2, None if second is None else second * 2
        if first.equal(second):
            both = first * 2
            return both, both.view(both.shape)
        return first * 2, second * 2


SECOND = X.clone().requires_grad_()


def printing(x):
    print("seen")
    return x * 2


def silencing(x):
    warnings.simplefilter("ignore")
    return x * 2


def fails(x):
    raise ValueError("no")


def fails_with(text):
    raise ValueError(text)


def fails_otherwise(x):
    raise KeyError("no")


def leaf():
    return X.clone().requires_grad_()


# Aspect -> eager, a compiled program with a fault in that aspect, what makes the argument.
PLANTED = {
    "values": (lambda x: x.sin(), lambda x: x.sin() + 1e-3, X.clone),
    "gradients": (lambda x: x * 2, Halved.apply, leaf),
    "mutations": (lambda x: x.add_(1), lambda x: x.add(1), X.clone),
    "metadata": (lambda x: x * 2, lambda x: (x * 2).T.contiguous().T, X.clone),
    "aliasing": (lambda x: x.view(-1), lambda x: x.clone().view(-1), X.clone),
    "exceptions": (fails, fails_otherwise, X.clone),
    "python": (lambda x: [x, 1], lambda x: [x, 1, 2], X.clone),
    "rng": (lambda x: x + random.random() * 0, lambda x: x + 0.0, X.clone),
    "double-backward": (lambda x: x * x, Once.apply, leaf),
    "spoken": (printing, lambda x: x * 2, X.clone),
    "streams": (lambda x: x * 2, silencing, X.clone),
    "exception-text": (fails, lambda x: fails_with("yes"), X.clone),
    "filled-gradients": (lambda x: (x * 2, SECOND * 2), lambda x: Filling.apply(x, SECOND), leaf),
    "identity": (lambda x: x, lambda x: x.view(x.shape), X.clone),
    "versions": (lambda x: x.add_(1), lambda x: (x.data.add_(1), x)[1], X.clone),
    "placement": (lambda x: x * 2, lambda x: torch.cat([x, x * 2])[len(x) :], X.clone),
    "gradient-memory": (lambda x: (x * 2, SECOND * 2), lambda x: OneForBoth.apply(x, SECOND), leaf),
    "gradient-strides": (lambda x: x * 2, Strided.apply, leaf),
    "zero-sign": (lambda x: x * 0.0, lambda x: (x * 0.0).abs(), X.clone),
}


def reported(verdict) -> set[str]:
    return {finding.aspect for finding in verdict.findings} | {note.split(":")[0] for note in verdict.notes}


def test_every_row_has_a_planted_fault():
    assert set(PLANTED) == set(aspect_names())
    assert len(ASPECTS) == len(set(aspect_names()))


@pytest.mark.parametrize("aspect", ASPECTS, ids=lambda aspect: aspect.name)
def test_planted_fault_is_caught_in_its_aspect(aspect: Aspect):
    eager, compiled, make = PLANTED[aspect.name]
    verdict = check(eager, (make(),), compiled=compiled)
    assert aspect.name in reported(verdict)
    assert verdict.failed == aspect.fails


@pytest.mark.parametrize("aspect", ASPECTS, ids=lambda aspect: aspect.name)
def test_sound_program_has_no_difference_in_any_aspect(aspect: Aspect):
    eager, _, make = PLANTED[aspect.name]
    verdict = check(eager, (make(),), compiled=lambda x: eager(x))
    assert not verdict.failed
    assert reported(verdict) == set()


@pytest.mark.parametrize("aspect", [aspect for aspect in ASPECTS if aspect.fails], ids=lambda aspect: aspect.name)
def test_ignored_aspect_is_a_note(aspect: Aspect):
    eager, compiled, make = PLANTED[aspect.name]
    verdict = check(eager, (make(),), compiled=compiled, options=JudgeOptions(ignore=frozenset({aspect.name})))
    assert aspect.name not in {finding.aspect for finding in verdict.findings}
    assert any(note.startswith(f"{aspect.name}: ") for note in verdict.notes)


@pytest.mark.parametrize("aspect", ASPECTS, ids=lambda aspect: aspect.name)
def test_documents_say_what_is_compared(aspect: Aspect):
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    row = f"| `{aspect.name}` | {aspect.meaning} | {'fails' if aspect.fails else 'is reported only'} |"
    assert any(row in page.read_text(encoding="utf-8") for page in pages)


# --- a new aspect -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def observe_warnings():
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        yield lambda: [str(warning.message) for warning in log]
    for warning in log:  # a live run's warnings are the user's
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def warning_differences(outcomes):
    eager, actual = outcomes.eager.observed["warnings"], outcomes.actual.observed["warnings"]
    if eager != actual:
        yield Difference(AFTER_ALL, "warnings", f"are {actual}, eager's are {eager}")


def loud(x):
    warnings.warn("mind the gap", stacklevel=2)
    return x * 2


def test_new_aspect_is_one_row(monkeypatch):
    row = Aspect("warnings", "what the call warns of", observe=observe_warnings, outcomes=warning_differences)
    for module in (aspects, compare):
        monkeypatch.setattr(module, "ASPECTS", (*ASPECTS, row))
    silent = check(loud, (X,), compiled=lambda x: x * 2)
    assert (silent.kind, silent.sentence) == (VerdictKind.WRONG, "warnings are [], eager's are ['mind the gap']")
    with pytest.warns(UserWarning, match="mind the gap") as heard:
        assert check(loud, (X,), compiled=lambda x: loud(x)).kind is VerdictKind.EQUAL
    assert len(heard) == 1  # the live run's; nobody hears the reference and the trial
    ignored = check(loud, (X,), compiled=lambda x: x * 2, options=JudgeOptions(ignore=frozenset({"warnings"})))
    assert ignored.kind is VerdictKind.EQUAL
