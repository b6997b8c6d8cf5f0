import sys
import textwrap

import pytest

from plumbline.minifier.source import inlining
from plumbline.minifier.source.inlining import ImportedName, imported_names, inlined
from plumbline.minifier.source.source_case import source_case

FILES = {
    "__init__.py": "from .core import blur as smooth, Net\nfrom . import tools\n",
    "core.py": """
        import math
        from .tools import scale
        FACTOR = 3
        def helper(x):
            return x * FACTOR
        def blur(x, scale_by=2):
            return helper(x) + scale(x) + math.pi
        class Net:
            def forward(self, x):
                return blur(x)
        """,
    "tools.py": "def scale(x):\n    return x * 10\n",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "package_of_test"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    inlining._bindings.cache_clear()
    yield "package_of_test"
    inlining._bindings.cache_clear()
    for name in [name for name in sys.modules if name.startswith("package_of_test")]:
        del sys.modules[name]


def everything_inlined(text: str) -> str:
    case = source_case(text)
    while names := imported_names(case):
        found = inlined(case, names[0])
        assert found is not None, names[0]
        case = found
    return case.text


@pytest.mark.parametrize(
    "program",
    [
        "from package_of_test import smooth\nresult = smooth(1)",
        "import package_of_test as p\nresult = p.smooth(1)",
        "import package_of_test\nresult = package_of_test.core.blur(1)",
        "from package_of_test import core\nresult = core.blur(1)",
        "from package_of_test.core import Net as Model\nresult = Model().forward(1)",
        "from package_of_test import smooth\nhelper = 5\nFACTOR = 7\nresult = smooth(1)",
    ],
)
def test_the_inlined_program_needs_no_package_and_computes_the_same(package, program):
    text = everything_inlined(program)
    assert package not in text
    plain, alone = {}, {}
    exec(program, plain)
    exec(text, alone)
    assert alone["result"] == plain["result"]


def test_what_cannot_be_copied_is_left():
    case = source_case("import torch, numpy as np, os\nfrom plumbline import compile\nfrom collections import deque")
    assert imported_names(case) == []
    assert inlined(source_case("from nowhere_at_all import x\nx"), ImportedName("x", "nowhere_at_all", "x")) is None


def test_a_module_that_is_imported_for_what_it_does_is_copied_whole(package, tmp_path):
    (tmp_path / package / "effect.py").write_text("import sys\nkept = sys.modules\nkept['seen_by_test'] = 7\n")
    text = everything_inlined(f"import {package}.effect\nimport sys\nresult = sys.modules.pop('seen_by_test')")
    assert package not in text
    scope = {}
    exec(text, scope)
    assert scope["result"] == 7


def test_a_module_whose_names_the_program_has_too_is_left_where_it_is(package, tmp_path):
    (tmp_path / package / "effect.py").write_text("kept = 1\n")
    case = source_case(f"import {package}.effect\nkept = 2\nprint(kept)")
    assert inlined(case, imported_names(case)[0]) is None


def test_an_import_that_stands_below_is_there_for_a_class_above(package, tmp_path):
    (tmp_path / package / "based.py").write_text("import fractions\nclass Base(fractions.Fraction):\n    pass\n")
    text = everything_inlined(f"from {package}.based import Base\nimport fractions\nresult = Base(1)")
    scope = {}
    exec(text, scope)
    assert scope["result"] == 1


def test_a_name_that_is_taken_gets_another_one_as_often_as_it_is_needed(package):
    program = f"from {package}.core import blur\nscale = 5\nresult = blur(1)"
    first = everything_inlined(program)
    assert everything_inlined(program) == first
