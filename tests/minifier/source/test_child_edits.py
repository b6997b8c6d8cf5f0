"""A child is compiled in the place of the whole module, in whatever way the program says what it compiles."""

import pytest

from plumbline.minifier.source.child_calls import ChildCall
from plumbline.minifier.source.child_edits import child_programs
from plumbline.minifier.source.source_case import source_case

NORM = ChildCall("layers.0.norm", "torch.randn(2, 4)", "torch.nn.LayerNorm((4,))", None, False, 1)
LAYER = ChildCall("layers.0", "torch.randn(2, 4), by=2", "", ("package.part", "Layer"), True, 3)
OTHER = ChildCall("other", "torch.randn(3)", "", None, True, 5)


@pytest.mark.parametrize(
    "program",
    [
        "model = Model(Config(4))\nplumbline.compile(model)(x, y=1)",
        "model = Model(Config(4))\ncompiled = plumbline.compile(model)\ncompiled(x)\ncompiled(x, y=1)",
    ],
)
def test_a_child_is_compiled_in_place_of_the_module(program):
    programs = [one.text for one in child_programs(source_case(program), [NORM, LAYER, OTHER])]
    assert all(one.startswith("import torch\n") for one in programs)
    norm, layer, by_path, other = programs
    assert "plumbline.compile(torch.nn.LayerNorm((4,)).eval())" in norm
    assert "(torch.randn(2, 4))" in norm
    assert "from package.part import Layer\n" in layer
    assert "plumbline.compile(Layer(Config(4)))" in layer
    assert "(torch.randn(2, 4), by=2)" in layer
    assert "plumbline.compile(model.get_submodule('layers.0'))" in by_path
    assert "plumbline.compile(model.get_submodule('other'))" in other
    assert "y=1" not in "".join(programs)


ACTIVATION = ChildCall("act", "torch.randn(2)", "", ("package.activations", "Smooth"), False, 1, configured=False)


def test_without_a_compiler_a_module_that_is_called_gives_way_to_its_child():
    """Under the plugin a test calls its model, and the judge compiles the call."""
    case = source_case("model = Model(Config(4)).eval()\nx = torch.ones(3)\nfound = model(x, y=1)\nmodel(x)\nlen(x)")
    norm, smooth, by_path = [one.text for one in child_programs(case, [NORM, ACTIVATION])]
    assert norm.count("torch.nn.LayerNorm((4,)).eval()(torch.randn(2, 4))") == 2
    assert "from package.activations import Smooth\n" in smooth
    assert smooth.count("Smooth().eval()(torch.randn(2))") == 2
    assert by_path.count("model.get_submodule('act')(torch.randn(2))") == 2
    assert all("len(x)" in one and "y=1" not in one for one in (norm, smooth, by_path))


def test_what_is_made_in_place_has_its_configuration_in_place():
    case = source_case("import torch\nplumbline.compile(Model(Config(4)).eval())(x)")
    assert "compile(Layer(Config(4)))(" in child_programs(case, [LAYER])[0].text
    assert child_programs(case, [OTHER])[0].text.count("import torch") == 1
    assert "compile(Model(Config(4)).eval().get_submodule('other'))(" in child_programs(case, [OTHER])[0].text


@pytest.mark.parametrize(
    "program",
    [
        "plumbline.compile(a)(x)\nplumbline.compile(b)(x)",
        "run = [plumbline.compile(a)]\nrun[0](x)",
        "re.compile(a)(x)",
        "@torch.compile\ndef f(x):\n    return x\nf(x)",
    ],
)
def test_nothing_is_tried_where_it_is_not_clear_what_is_called(program):
    assert child_programs(source_case(program), [NORM]) == []


def test_imports_of_the_future_stay_first():
    case = source_case("from __future__ import annotations\nplumbline.compile(a)(x)")
    assert child_programs(case, [NORM])[0].text.splitlines()[:2] == [
        "from __future__ import annotations",
        "import torch",
    ]
