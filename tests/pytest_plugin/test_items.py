import pytest

from support.plugin_runs import PluginRuns, outcomes

pytest_plugins = ["pytester"]

PLAIN = """
def test_plain(compiled):
    assert compiled(planned(lambda: 1))() == 1

@pytest.mark.parametrize("size", [3, 5])
def test_sizes(compiled, size):
    assert compiled(planned(lambda n: n))(size) == size

class TestClass:
    @pytest.mark.usefixtures("compiled")
    def test_method(self, compiled):
        assert compiled(planned(lambda: self))() is self
"""


def names(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line and " " not in line]


def test_ids_carry_the_variant_after_the_other_parameters_and_variants_are_adjacent(runs: PluginRuns) -> None:
    runs.write(PLAIN)
    assert names(runs.run("--collect-only", "-q")) == [
        f"test_it.py::{name}"
        for name in (
            "test_plain[torch:eager]",
            "test_plain[torch:aot_eager]",
            "test_plain[torch:inductor]",
            "test_sizes[3-torch:eager]",
            "test_sizes[3-torch:aot_eager]",
            "test_sizes[3-torch:inductor]",
            "test_sizes[5-torch:eager]",
            "test_sizes[5-torch:aot_eager]",
            "test_sizes[5-torch:inductor]",
            "TestClass::test_method[torch:eager]",
            "TestClass::test_method[torch:aot_eager]",
            "TestClass::test_method[torch:inductor]",
        )
    ]


def test_every_variant_runs_and_passes(runs: PluginRuns) -> None:
    runs.write(PLAIN)
    assert outcomes(runs.run()) == {"passed": 12}


def test_without_the_option_ids_and_fixture_are_untouched(runs: PluginRuns) -> None:
    runs.write(PLAIN)
    assert names(runs.run("--collect-only", "-q", backends=None)) == [
        "test_it.py::test_plain",
        "test_it.py::test_sizes[3]",
        "test_it.py::test_sizes[5]",
        "test_it.py::TestClass::test_method",
    ]
    assert outcomes(runs.run(backends=None)) == {"passed": 4}
    assert not runs.sessions


def test_k_selects_one_backend_and_does_not_confuse_eager_with_aot_eager(runs: PluginRuns) -> None:
    runs.write(PLAIN)
    selected = names(runs.run("--collect-only", "-q", "-k", "torch:eager"))
    assert len(selected) == 4
    assert all(name.endswith(("[torch:eager]", "-torch:eager]")) for name in selected)


def test_a_node_id_selects_one_item(runs: PluginRuns) -> None:
    runs.write(PLAIN)
    assert outcomes(runs.run("test_it.py::test_sizes[5-torch:aot_eager]")) == {"passed": 1}


def test_a_node_id_without_the_variant_selects_all_of_them(runs: PluginRuns) -> None:
    runs.write(PLAIN)
    assert outcomes(runs.run("test_it.py::test_plain")) == {"passed": 3}


UNITTEST = """
import unittest

class TestCase(unittest.TestCase):
    made = 0

    @classmethod
    def setUpClass(cls):
        cls.shared = [1]

    def setUp(self):
        self.size = 3
        from plumbline.pytest_plugin.current import current_session
        assert current_session() is None

    def tearDown(self):
        from plumbline.pytest_plugin.current import current_session
        assert current_session() is None

    def test_right(self):
        from plumbline.pytest_plugin.fixtures import mark_boundary
        self.assertEqual(mark_boundary(planned(lambda n: n))(self.size), 3)
        self.assertEqual(self.id().split(".")[-1], "test_right")

    def test_wrong(self):
        from plumbline.pytest_plugin.fixtures import mark_boundary
        mark_boundary(planned(lambda: 1, inductor="WRONG"))()

    @unittest.expectedFailure
    def test_expected(self):
        from plumbline.pytest_plugin.fixtures import mark_boundary
        mark_boundary(planned(lambda: 1, inductor="WRONG"))()
        self.fail("as expected")

    def test_sub(self):
        from plumbline.pytest_plugin.fixtures import mark_boundary
        for number in range(3):
            with self.subTest(number=number):
                mark_boundary(planned(lambda: 1, inductor="WRONG"))()
                self.assertNotEqual(number, 1)

    @unittest.skip("why not")
    def test_skipped(self):
        raise AssertionError
"""


def test_unittest_methods_run_under_every_variant_and_cannot_swallow_a_verdict(runs: PluginRuns) -> None:
    runs.write(UNITTEST)
    result = runs.run("-v", "-rA")
    text = result.stdout.str()
    for word, name in (
        ("PASSED", "test_right[torch:inductor]"),
        ("PASSED", "test_wrong[torch:aot_eager]"),
        ("FAILED", "test_wrong[torch:inductor]"),
        ("XFAIL", "test_expected[torch:eager]"),
        ("FAILED", "test_expected[torch:inductor]"),
        ("FAILED", "test_sub[torch:inductor]"),
        ("SKIPPED", "test_skipped[torch:eager]"),
    ):
        assert f"TestCase::{name} {word}" in text, text
    assert "FAILED test_it.py::TestCase::test_wrong[torch:inductor] - WRONG at inductor: output[0]: planned" in text


def test_coroutine_tests_and_doctests_stay_single(runs: PluginRuns) -> None:
    runs.write('''
def documented():
    """
    >>> 1 + 1
    2
    """

async def test_later():
    pass
''')
    listed = names(runs.run("--collect-only", "-q", "--doctest-modules"))
    assert listed == ["test_it.py::test_it.documented", "test_it.py::test_later"]


def test_randomly_keeps_the_variants_of_a_test_together(runs: PluginRuns) -> None:
    runs.write(PLAIN)
    for seed in (1, 2, 3):
        result = runs.run("--collect-only", "-q", f"--randomly-seed={seed}", quiet=False)
        listed = names(result)
        assert [name.split("[")[1].split("-")[-1].rstrip("]") for name in listed] == [
            "torch:eager",
            "torch:aot_eager",
            "torch:inductor",
        ] * 4, (seed, listed)
