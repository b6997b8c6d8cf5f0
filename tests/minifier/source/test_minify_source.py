import sys

import pytest

from plumbline.minifier.source import minify_source as module
from plumbline.minifier.source.minify_source import DoesNotReproduce, SourceOptions, installed_packages, minify_source
from plumbline.minifier.source.program_of_test import Program
from plumbline.minifier.source.source_case import source_case


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

    def minified(case, origin, options, settings, progress):
        asked.append(settings.preload)
        if settings.preload or attempts == 1:
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
    assert asked == ([("einops",), ()] if attempts == 2 else [()])
