import subprocess

import pytest
import torch

from plumbline.minifier.failure_signature import FailureSignature, exception_signature, signature_of
from plumbline.oracle.verdict import ErrorStatistics, Finding, Verdict, VerdictKind


def wrong(aspect="values", where="output[0]", **numbers) -> Verdict:
    found = ErrorStatistics(1.0, 1.0, 1.0, **numbers) if numbers else None
    finding = Finding(VerdictKind.WRONG, aspect, where, "differs", found)
    return Verdict(VerdictKind.WRONG, "differs", (finding,))


def test_a_verdict_that_passes_has_no_signature():
    assert (
        signature_of(Verdict(VerdictKind.NOISE, "fine", (Finding(VerdictKind.NOISE, "values", "output", "x"),))) is None
    )


MARGINS = [(1.5, "doubtful"), (30.0, "clear"), (1e6, "gross"), (float("nan"), "gross")]


@pytest.mark.parametrize(("margin", "band"), MARGINS)
def test_bands_follow_the_margin(margin, band):
    assert signature_of(wrong(margin=margin, actual=2.0, eager=1.0)).band == band


def test_a_nan_on_one_side_only_is_its_own_band():
    assert signature_of(wrong(margin=9.0, actual=float("nan"), eager=1.0)).band == "non-finite"


def test_structure_is_exact_and_signs_are_told():
    assert signature_of(wrong("metadata")).band == "exact"
    assert signature_of(wrong(margin=9.0, actual=0.5, eager=1.0)).sign == -1


def test_a_gross_failure_does_not_slide_into_rounding():
    gross, doubtful = (
        FailureSignature("WRONG", "values", band="gross"),
        FailureSignature("WRONG", "values", band="doubtful"),
    )
    assert not gross.matches(doubtful)
    assert doubtful.matches(gross)
    assert gross.matches(FailureSignature("WRONG", "values", band="exact", sign=1))


@pytest.mark.parametrize(
    "other",
    [
        FailureSignature("CRASH", "values", band="gross"),
        FailureSignature("WRONG", "gradients", band="gross"),
        FailureSignature("WRONG", "exceptions", "run", "ValueError", "a.py:f"),
    ],
)
def test_another_kind_or_aspect_is_another_failure(other):
    assert not FailureSignature("WRONG", "values", band="gross").matches(other)


def raised(kind, wrap=None) -> BaseException:
    try:
        try:
            raise kind("text")
        except Exception as error:
            if wrap is not None:
                raise wrap("around") from error
            raise
    except Exception as error:
        return error


def test_exceptions_are_told_by_root_cause_and_site_not_by_words():
    one = exception_signature(raised(KeyError, RuntimeError), "compile")
    assert (one.exception, one.phase) == ("KeyError", "compile")
    assert one.site == "the program:raised"  # a script holds a copy of it, in another file
    assert one.matches(exception_signature(raised(KeyError), "compile"))
    assert not one.matches(exception_signature(raised(ValueError), "compile"))
    assert not one.matches(exception_signature(raised(KeyError), "run"))


def test_sites_inside_pythons_library_name_the_caller():
    with pytest.raises(subprocess.CalledProcessError) as caught:
        subprocess.run(["false"], check=True)
    site = exception_signature(caught.value, "run").site
    assert site == "the program:test_sites_inside_pythons_library_name_the_caller"


def test_sites_in_what_is_installed_name_the_file():
    with pytest.raises(RuntimeError) as caught:
        torch.nn.Linear(2, 2)(torch.ones(3))
    assert exception_signature(caught.value, "run").site == "modules/linear.py:forward"
