"""A test's own id runs all of its variants, wherever pytest takes ids; an id with a variant runs that one."""

import pytest

from plumbline.pytest_plugin.variant_ids import name_tests_alone, split_id, variant_id
from support.plugin_runs import PluginRuns, outcomes

pytest_plugins = ["pytester"]

GATES = """
import unittest

@pytest.mark.parametrize("gate", [0.1, 0.5])
def test_gate(gate, compiled):
    compiled(planned(lambda: gate))()

@pytest.mark.parametrize("text", ["a::b", "c-d"])
def test_text(text):
    assert text

class TestGroup:
    def test_in_class(self):
        pass

class Case(unittest.TestCase):
    def test_in_case(self):
        pass
"""


@pytest.mark.parametrize(
    ("node_id", "plain", "label"),
    [
        ("f.py::test", "f.py::test", ""),
        ("f.py::test[0.1]", "f.py::test[0.1]", ""),
        ("f.py::test[plumbline:eager]", "f.py::test", "plumbline:eager"),
        ("f.py::A::test[x-y-torch:aot_eager]", "f.py::A::test[x-y]", "torch:aot_eager"),
        ("f.py::test[torch:eager-x]", "f.py::test[torch:eager-x]", ""),
    ],
)
def test_an_id_is_a_test_and_a_variant(node_id: str, plain: str, label: str) -> None:
    assert split_id(node_id) == (plain, label)
    assert not label or variant_id(plain, label) == node_id


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["test_it.py::test_gate[0.1]"], 3),
        (["test_it.py::test_gate"], 6),
        (["test_it.py::test_gate[0.1-torch:eager]"], 1),
        (["test_it.py::test_gate[torch:eager]"], 2),
        (["test_it.py::test_text[a::b]"], 3),
        (["test_it.py::test_text[a::b-torch:inductor]"], 1),
        (["test_it.py::test_gate[0.1-torch:eager]", "test_it.py::test_gate[0.1-torch:inductor]"], 2),
        (["test_it.py::test_gate[0.1]", "test_it.py::test_gate[0.5-torch:eager]"], 4),
        (["test_it.py::TestGroup", "test_it.py::Case::test_in_case[torch:eager]"], 4),
        (["./test_it.py::Case"], 3),
        (["@ids.txt"], 4),
        (["test_it.py", "--deselect=test_it.py::test_gate[0.1]"], 15),
        (["test_it.py", "--deselect=test_it.py::test_gate[0.1-torch:eager]"], 17),
        (["test_it.py", "--deselect", "test_it.py::test_gate"], 12),
        (["-k", "test_gate and torch:eager"], 2),
    ],
)
def test_ids_as_people_give_them(runs: PluginRuns, arguments: list[str], count: int) -> None:
    runs.write(GATES)
    (runs.pytester.path / "ids.txt").write_text("test_it.py::test_gate[0.5]\ntest_it.py::test_text[c-d-torch:eager]\n")
    listed = [
        line for line in runs.run("--collect-only", "-q", *arguments).outlines if "::" in line and " " not in line
    ]
    assert len(listed) == count, listed
    assert all(split_id(name)[1] for name in listed)


def test_the_counts_of_a_run_are_those_of_variants(runs: PluginRuns) -> None:
    runs.write(GATES)
    result = runs.run("-k", "test_gate and torch:eager", quiet=False)
    result.stdout.fnmatch_lines(["collected 18 items / 16 deselected / 2 selected"])


def test_a_variant_that_does_not_run_is_named(runs: PluginRuns) -> None:
    runs.write(GATES)
    result = runs.run("test_it.py::test_gate[0.1-torch:inductor]", backends="eager")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*torch:inductor is not among the variants that run*add --compile-backends=torch:inductor*"]
    )


FAILING = """
def test_good():
    pass

@pytest.mark.parametrize("size", [1, 2])
def test_bad(size, compiled):
    assert compiled(planned(lambda: size, aot_eager="WRONG"))() == 1
"""


def cached(runs: PluginRuns, *arguments: str, backends: str | None = "eager,aot_eager") -> dict[str, int]:
    return outcomes(runs.run("-p", "no:randomly", *arguments, backends=backends, quiet=False))


def test_failures_of_a_plain_run_are_run_under_every_backend(runs: PluginRuns) -> None:
    runs.write(FAILING)
    assert cached(runs, backends=None) == {"failed": 1, "passed": 2}
    found = cached(runs, "--lf")
    assert found == {"failed": 2}, found


def test_failures_of_a_judged_run_are_run_plainly(runs: PluginRuns) -> None:
    runs.write(FAILING)
    assert cached(runs) == {"failed": 3, "passed": 1, "vacuous": 2}
    assert cached(runs, "--lf") == {"failed": 3, "deselected": 1}
    assert cached(runs, "--lf", backends=None) == {"failed": 1, "passed": 1}
    listed = runs.run("-p", "no:randomly", "--ff", "-v", backends=None, quiet=False).outlines
    ran = [line.split(" ")[0] for line in listed if line.startswith("test_it.py::")]
    assert ran.index("test_it.py::test_bad[2]") < ran.index("test_it.py::test_good")


def test_pytests_own_ids_are_left_alone() -> None:
    failed = {"f.py::test": True, "f.py::other[torch:eager]": True, "f.py::other[torch:inductor]": True}
    assert name_tests_alone(failed) == {"f.py::other": {"torch:eager", "torch:inductor"}}
    assert failed == {"f.py::test": True, "f.py::other": True}
