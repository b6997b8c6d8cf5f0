import pytest

from plumbline.minifier.cases.case_run import split_variant


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("t.py::test_y", ("t.py::test_y", None, None)),
        ("t.py::test_y[torch:inductor]", ("t.py::test_y", "torch", "inductor")),
        ("t.py::test_y[3-plumbline:eager]", ("t.py::test_y[3]", "plumbline", "eager")),
        ("t.py::test_y[torch:aot_eager-a:b]", ("t.py::test_y[a:b]", "torch", "aot_eager")),
        ("t.py::test_y[a:b]", ("t.py::test_y[a:b]", None, None)),
    ],
)
def test_the_variant_is_read_from_the_id(node, expected):
    assert split_variant(node) == expected
