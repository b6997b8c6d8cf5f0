import sys

import pytest

from plumbline.minifier.failure_signature import FailureSignature
from plumbline.minifier.source import minify_source as module
from plumbline.minifier.source.minify_source import (
    DoesNotReproduce,
    SourceOptions,
    installed_packages,
    made_small,
    minify_source,
    preloaded,
)
from plumbline.minifier.source.program_of_test import Program
from plumbline.minifier.source.source_case import source_case
from plumbline.minifier.source.source_reduction import FailureGone
from plumbline.minifier.source.source_run import RunReport, SourceSettings


def test_own_modules_are_looked_into_and_not_loaded_beforehand(tmp_path):
    (tmp_path / "helper.py").write_text("import einops\nimport inner.part\nfrom plumbline.testing import lowering_of\n")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "part.py").write_text("import transformers\nimport helper\n")
    case = source_case("import helper\nimport torch\nfrom kornia.filters import blur\n")
    found = installed_packages(case, tmp_path)
    assert set(found) == {"einops", "transformers", "kornia.filters", "plumbline.testing"}


@pytest.mark.parametrize(("text", "attempts"), [("import einops", 2), ("import torch", 1)])
def test_what_fails_only_with_loaded_packages_is_reduced_again_without(tmp_path, monkeypatch, text, attempts):
    """The process that runs candidates imports packages once, so that a fault that an import brings seems to stay."""
    asked = []

    def minified(case, origin, options, settings, progress, loaded):
        if loaded is not None:
            loaded += module.installed_packages(case, tmp_path)
        asked.append(loaded)
        if loaded is not None:
            raise DoesNotReproduce("not in fresh processes", hint="")
        return "a script"

    monkeypatch.setattr(module, "_minified", minified)
    monkeypatch.setattr(sys, "path", [*sys.path])
    program, options = Program(text, str(tmp_path)), SourceOptions(out=tmp_path / "out.py", compiler="x", backend="y")
    if attempts == 1:
        with pytest.raises(DoesNotReproduce):
            minify_source(program, "origin", options, lambda _: None)
    else:
        assert minify_source(program, "origin", options, lambda _: None) == "a script"
    assert asked == ([["einops"], None] if attempts == 2 else [[]])


WRONG, OTHER = FailureSignature("WRONG", "values", band="gross"), FailureSignature("CRASH", "exceptions")
LOADED = RunReport(WRONG, "wrong", imported=("einops", "einops.layers"))


class Warm:
    """Says of a program what it is told to say where modules were loaded beforehand."""

    def __init__(self, answer):
        self.answer, self.asked, self.closed = answer, [], False

    def ask(self, text, settings):
        self.asked.append(settings.preload)
        return self.answer

    def close(self):
        self.closed = True


@pytest.mark.parametrize("signature", [WRONG, OTHER, None])
def test_what_a_run_imported_is_loaded_beforehand_unless_the_failure_goes(signature):
    """Names of a lazy package bring most of it only when they are read: without this, at every run anew."""
    settings = SourceSettings(compiler="plumbline", backend="inductor")
    warm = Warm(RunReport(signature, "with them"))
    chosen, first = preloaded(source_case("import einops"), LOADED, warm, settings)
    assert warm.asked == [LOADED.imported]
    if signature is WRONG:
        assert (chosen.preload, first, warm.closed) == (LOADED.imported, warm.answer, False)
    else:
        assert (chosen.preload, first, warm.closed) == ((), LOADED, True)


LAYERS = source_case("build(layers=400, width=8)")


@pytest.mark.parametrize(("signature", "number"), [(WRONG, 2), (OTHER, 400), (None, 400)])
def test_a_large_program_is_run_once_where_a_small_one_fails_too(signature, number):
    """Finding its conditions takes five runs and more, each of which compiles all of its layers."""
    settings = SourceSettings(compiler="plumbline", backend="inductor")
    case, first = made_small(LAYERS, LOADED, Warm(RunReport(signature, "small")), settings)
    assert case.text == f"build(layers={number}, width=8)\n"
    assert first.sentence == ("small" if number == 2 else "wrong")


class NeedsCalls(Warm):
    """Only a program of a hundred calls fails, whatever its layers."""

    def ask(self, text, settings):
        self.asked.append(text)
        return RunReport(WRONG if "range(100)" in text else None, "small")


def test_one_number_is_made_small_where_another_is_needed():
    """A storm of recompilations needs its calls, not its four hundred layers in each of them."""
    settings, warm = SourceSettings(compiler="plumbline", backend="inductor"), NeedsCalls(None)
    calls = source_case("model = build(layers=400)\nfor _ in range(100):\n    model(1)\n")
    case, _ = made_small(calls, LOADED, warm, settings)
    assert case.text == "model = build(layers=2)\nfor _ in range(100):\n    model(1)\n"
    assert len(set(warm.asked)) == 2


class NowAndThen(Warm):
    """Programs fail in every n-th run, for the share that their text has."""

    def ask(self, text, settings):
        self.asked.append(text)
        share = 2 if "share=120" in text else 100
        fails = settings.repeat > 1 or self.asked.count(text) % share == 0
        return RunReport(WRONG if fails else None, "now and then")


def test_what_fails_now_and_then_is_made_small_and_gets_its_packages():
    """One run of the small program that is well would keep four hundred layers, and minutes for each run."""
    settings = SourceSettings(compiler="plumbline", backend="inductor")
    case, first = made_small(LAYERS_AND_SHARE, LOADED, NowAndThen(None), settings)
    assert (case.text, first.sentence) == ("build(layers=2, share=120)\n", "now and then")
    chosen, _ = preloaded(case, LOADED, NowAndThen(None), settings)
    assert (chosen.preload, chosen.repeat) == (LOADED.imported, 1)


LAYERS_AND_SHARE = source_case("build(layers=400, share=120)")


class SteadyAtFirst(Warm):
    """A program that fails in its first four runs, and in every second one after that."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def ask(self, text, settings):
        self.asked.append(text)
        count = len(self.asked)
        return RunReport(WRONG if count <= 4 or count % 2 or settings.repeat > 1 else None, f"run {count}")


@pytest.mark.parametrize("error", [FailureGone, DoesNotReproduce])
def test_what_was_taken_to_fail_at_every_run_is_reduced_as_what_does_not(tmp_path, monkeypatch, error):
    tried = []

    def reduced(case, first, warm, settings, *_, **__):
        tried.append(settings.repeat)
        raise error("it is gone", hint="")

    monkeypatch.setattr(module, "WarmProcess", lambda: SteadyAtFirst(None))
    monkeypatch.setattr(module, "reduce_source", reduced)
    options = SourceOptions(out=tmp_path / "out.py", compiler="plumbline", backend="eager")
    settings = SourceSettings(compiler="plumbline", backend="eager", threads=1)
    said = []
    with pytest.raises(error):
        module._minified(source_case("build(2)"), "origin", options, settings, said.append, None)
    once, often = tried
    assert once == 1 < 10 < often
    assert "it is gone: it fails now and then" in said


def test_what_does_not_fail_is_not_made_small():
    warm = Warm(None)
    good = RunReport(None, "fine")
    assert made_small(LAYERS, good, warm, SourceSettings(compiler="x", backend="y")) == (LAYERS, good)
    assert warm.asked == []


def test_a_process_that_died_has_its_imports_in_its_text():
    warm = Warm(None)
    died = RunReport(OTHER, "the process ends by SIGSEGV")
    settings = SourceSettings(compiler="plumbline", backend="inductor")
    assert preloaded(source_case("import einops"), died, warm, settings)[0].preload == ("einops",)
    assert warm.asked == []
