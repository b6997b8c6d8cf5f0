import pytest
import torch

from plumbline.compiler.base.errors import Unsupported
from plumbline.compiler.lowering import lower as _every_lowering  # noqa: F401 - registers every lowering
from plumbline.compiler.lowering.registry import lowering_of, replace_lowering, replaced_lowerings
from plumbline.minifier.graphs.planted_faults import planted_faults

aten = torch.ops.aten
SHIFT = 3


def shifted(call):
    assert SHIFT == 3
    return lowering_of(torch.ops.aten.sin.default)(call)


def carried_out(text):
    """Run the statements as a script would, and return the lowerings that are then replaced."""
    scope = {"torch": torch}
    body = "\n".join(f"    {line}" for line in text.splitlines())
    exec(f"def configure():\n{body}\nconfigure()", scope)
    found = replaced_lowerings()
    for name in [name for name in vars(scope["configure"]) if name.startswith("fault_")]:
        vars(scope["configure"])[name].__exit__(None, None, None)
    return found


def test_nothing_planted_is_nothing_to_tell():
    assert planted_faults() == ""


def test_another_operators_lowering_is_named():
    with replace_lowering(aten.relu.default, lowering_of(aten.sin.default)):
        text = planted_faults()
    assert carried_out(text) == {aten.relu.default: lowering_of(aten.sin.default)}


def test_a_function_of_a_test_travels_with_its_source_and_names():
    with replace_lowering(aten.relu.default, shifted):
        text = planted_faults()
    assert "def shifted(call)" in text
    found = carried_out(text)
    assert list(found) == [aten.relu.default]
    assert found[aten.relu.default].__code__.co_name == "shifted"


def test_a_lowering_that_calls_one_of_ours_travels():
    plain = lowering_of(aten.sin.default)

    def calls_ours(call):
        return plain(call)

    with replace_lowering(aten.relu.default, calls_ours):
        text = planted_faults()
    assert list(carried_out(text)) == [aten.relu.default]


def test_a_lowering_that_holds_an_object_cannot_travel():
    kept = object()

    def holds(call):
        return kept

    with replace_lowering(aten.relu.default, holds), pytest.raises(Unsupported, match="cannot be written"):
        planted_faults()
