import pytest

from plumbline.minifier.source.single_edits import SINGLE_EDITS, parts_of_calls, plainer
from plumbline.minifier.source.source_case import is_program, source_case


def after(kind: str, text: str) -> list[str]:
    case = source_case(text)
    return [edit.applied(case).text.strip() for edit in SINGLE_EDITS[kind](case)]


@pytest.mark.parametrize(
    ("kind", "before", "expected"),
    [
        ("statements", "a = 1\nb = 2", ["a = 1", "b = 2"]),
        ("statements", "if a:\n    b()\nelse:\n    c()", ["if a:\n    b()"]),
        ("blocks", "with f() as x:\n    g(x)", ["g(x)", "x = f()\ng(x)"]),
        ("blocks", "for i in s:\n    g(i)", ["i = next(iter(s))\ng(i)"]),
        ("blocks", "try:\n    a()\nexcept E:\n    b()\nfinally:\n    c()", ["a()", "a()\nc()"]),
        ("arguments and elements", "f(a, b=1)", ["f(a)", "f(b=1)"]),
        ("arguments and elements", "with a, b:\n    c()", ["with a:\n    c()", "with b:\n    c()"]),
        ("arguments and elements", "import a", [""]),
        ("parameters", "def f(a, b):\n    return a\nf(1, 2)", ["def f(a):\n    return a\nf(1)"]),
        ("parameters", "def f(a, b=2):\n    return a\nf(1, b=3)", ["def f(a):\n    return a\nf(1)"]),
        ("expressions", "y = x.sin() + 1", ["y = x.sin()", "y = 1", "y = x + 1"]),
        ("variables", "h = f(x)\nreturned = h + 1", ["returned = f(x) + 1"]),
        ("variables", "self.h = f(x)\nreturned = self.h + 1", ["returned = f(x) + 1"]),
        ("variables", "() = f(x)", ["f(x)"]),
        ("calls", "def f(a):\n    return a + 1\ny = f(x)", ["y = x + 1"]),
        ("calls", "class A:\n\n    def f(self, a=2):\n        self.g(a)\nx.f()", ["class A:\n    pass\nx.g(2)"]),
        ("calls", "def f(a, b):\n    c = a * a + b\n    return c\ny = f(g(1), 2)", ["a = g(1)\nc = a * a + 2\ny = c"]),
        ("calls", "def f(a):\n    a += 1\n    print(a)\nf(x)", ["a = x\na += 1\nprint(a)"]),
        ("constants", "x = 12", ["x = 0", "x = 1", "x = 2", "x = 3", "x = 6"]),
        (
            "base classes",
            "import torch\nclass A(B):\n    pass",
            ["import torch\n\nclass A(torch.nn.Module):\n    pass"],
        ),
        (
            "base classes",
            "class A(B, C):\n    pass\n\nclass D(A):\n    pass",
            ["class A(B, C):\n    pass\n\nclass D(B, C):\n    pass"],
        ),
    ],
)
def test_an_edit_of_each_kind(kind, before, expected):
    found = after(kind, before)
    assert [text for text in expected if text not in found] == []


@pytest.mark.parametrize(
    "text",
    [
        "def f(a):\n    return a\nf(1)\nf(2)",
        "def f(a):\n    return f(a)",
        "def f(a):\n    yield a\nf(1)",
        "def f(a):\n    if a:\n        return 1\n    return 2\nf(1)",
        "@g\ndef f(a):\n    return a\nf(1)",
    ],
)
def test_calls_that_stay_calls(text):
    assert after("calls", text) == []


def test_calls_of_named_functions_become_their_arguments():
    case = source_case("y = pad(x, 2) + own(z)\ny = m.blur(y)")
    found = [edit.applied(case).text.strip() for edit in parts_of_calls(case, {"pad", "m"})]
    assert "y = x + own(z)\ny = m.blur(y)" in found
    assert "y = pad(x, 2) + own(z)\ny = y" in found
    assert not any("own" not in text for text in found)


@pytest.mark.parametrize("value", [0, 1, 7, 1000, 0.0, 1.0, 3.7, 1e30, "text", "", True, None, -1])
def test_plainer_constants_come_to_an_end(value):
    seen = []
    while options := plainer(value):
        assert value not in options
        value = options[-1]
        seen.append(value)
        assert len(seen) < 40


def test_every_edit_of_a_module_of_the_library_is_python_or_refused():
    """A program that knows nothing of our edits: every single edit of it can be written down again."""
    import textwrap as module

    with open(module.__file__) as file:
        case = source_case(file.read())
    for edits_of in SINGLE_EDITS.values():
        for edit in edits_of(case)[::17]:
            assert edit.applied(case).text != case.text
            is_program(edit.applied(case))


def test_comments_docstrings_and_annotations_go_at_once():
    assert (
        source_case('"""Doc."""\ndef f(x: int) -> int:\n    """Doc."""\n    return x  # why').text
        == "def f(x):\n    return x\n"
    )
