"""The table of planted faults: what counts, what is named."""

from plumbline.pytest_plugin.mutating.planted_faults_table import PlantedTrial, score, table_lines


def trial(test, fault, *, effect=True, noticed=False):
    return PlantedTrial(f"t.py::{test}", "plumbline:inductor", fault, f"is wrong by {fault}", effect, noticed)


TRIALS = [
    trial("a", "scale", noticed=True),
    trial("b", "scale"),
    trial("a", "write"),
    trial("a", "draws", effect=False, noticed=True),  # it failed, but not by this fault
]


def test_a_fault_counts_where_it_changed_something():
    assert score(TRIALS) == (1, 2)
    assert score([]) == (0, 0)


def test_the_table_names_what_stands_out():
    text = [line for line, _ in table_lines(TRIALS)]
    assert text == [
        "planted fault      tests with it    that noticed",
        "---------------  ---------------  --------------",
        "scale                          2               1",
        "write                          1               0",
        "",
        "mutation score: 1 of 2 faults were noticed by some test",
        "1 of 3 runs with a fault failed; the judge is off in these runs",
        "1 faults changed nothing in these tests: draws",
        "",
        "noticed by no test:",
        "  write: the compiled code is wrong by write",
        "    in t.py::a",
        "",
        "tests that noticed no fault:",
        "  t.py::b",
    ]


def test_long_lists_are_cut():
    many = [trial(f"test_{n}", "scale") for n in range(9)]
    text = [line for line, _ in table_lines(many)]
    assert "    in t.py::test_0, t.py::test_1, t.py::test_2 and 6 more" in text
    assert "  and 6 more" in text
