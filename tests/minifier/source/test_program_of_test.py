import textwrap

import pytest

from plumbline.minifier.source.program_of_test import program_of_case

FILE = """
    import unittest

    import pytest

    seen = []

    @pytest.fixture
    def made():
        yield "made"

    @pytest.mark.parametrize("number", [1, 2])
    def test_plain(number, made):
        seen.append((number, made))

    class OfPytest:
        def setup_method(self, method):
            self.ready = True

        def test_it(self):
            seen.append(self.ready)

    class OfUnittest(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            cls.shared = 1

        def setUp(self):
            self.own = 2

        def test_it(self):
            with self.subTest(part=1):
                seen.append(self.shared + self.own)
    """


@pytest.mark.parametrize(
    ("test", "expected"),
    [("test_plain[2]", (2, "made")), ("OfPytest::test_it", True), ("OfUnittest::test_it", 3)],
)
def test_the_program_of_a_test_does_what_the_test_does(tmp_path, monkeypatch, test, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\npython_classes = Of*\n")
    file = tmp_path / f"test_{abs(hash(test))}.py"
    file.write_text(textwrap.dedent(FILE))
    scope = {"__name__": "program"}
    exec(program_of_case(f"{file}::{test}").text, scope)
    assert scope["seen"] == [expected]
