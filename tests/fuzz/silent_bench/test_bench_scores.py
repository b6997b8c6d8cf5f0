"""The arithmetic of SilentBench: recall, precision, the rows of its table, and when the command fails."""

from plumbline.fuzz.silent_bench.bench_cases import BenchCase, Status
from plumbline.fuzz.silent_bench.bench_scores import BenchReport, CaseOutcome


def outcome(name: str, status: str | None, flagged: bool, *, fault: str = "hooks", wrong_at: str = "eager", **words):
    known = {"2.13": Status(status)} if status else {}
    return CaseOutcome(BenchCase(name, fault, wrong_at=wrong_at, torch=known), flagged, **words)


def report(*outcomes: CaseOutcome, compiler: str = "torch", backend: str = "inductor") -> BenchReport:
    return BenchReport("a judge", compiler, backend, "2.13.0+cpu", len(outcomes), list(outcomes))


MIXED = (
    outcome("found", "live", True),
    outcome("lost", "live", False),
    outcome("loud", "raises", True),
    outcome("mended", "fixed", False),
    outcome("cried", "control", True, fault="modes", verdict="WRONG", sentence="too loud"),
    outcome("new", None, True, fault="modes"),
)


def test_recall_counts_silent_faults_only():
    assert report(*MIXED).recall == 1 / 2
    assert report(outcome("loud", "raises", False)).recall is None


def test_precision_counts_flags_on_known_cases():
    assert report(*MIXED).precision == 2 / 3  # found, loud; not cried; new is unknown
    assert report(outcome("quiet", "control", False)).precision is None


def test_rows_of_the_table():
    one = report(*MIXED)
    assert one.counts(one.outcomes) == (6, 2, 1, 1, 1, 2, 1, 1)
    rows = [line.split() for line in one.table().splitlines()]
    assert ["hooks", "4", "2", "1", "1", "1", "1", "0", "0"] in rows
    assert ["modes", "2", "0", "0", "0", "0", "1", "1", "1"] in rows


def test_what_differs_is_named():
    one = report(*MIXED)
    assert [o.case.name for o in one.missed] == ["lost"]
    assert [o.case.name for o in one.false_alarms] == ["cried"]
    assert one.failed
    text = one.summary()
    assert "missed: hooks/lost: passed" in text
    assert "false alarm: modes/cried: WRONG: too loud" in text
    assert "flagged, nothing known: modes/new: flagged" in text
    assert "recall 50.0 %, precision 66.7 %" in text


def test_agreement_is_success():
    assert not report(outcome("found", "live", True), outcome("mended", "fixed", False)).failed
    assert not report(outcome("new", None, True)).failed  # no expectation, nothing to differ from
    assert report(outcome("loud", "raises", False)).failed


def test_faults_of_later_backends_are_none_before():
    late = outcome("late", "live", False, wrong_at="inductor")
    assert report(late, backend="aot_eager").counts([late]) == (1, 0, 0, 0, 0, 1, 0, 0)
    assert report(late).counts([late]) == (1, 1, 0, 1, 0, 0, 0, 0)


def test_our_own_compiler_has_its_own_status():
    known = CaseOutcome(BenchCase("ours", "hooks", wrong_at="eager", plumbline=Status.LIVE), True)
    assert not report(known, compiler="plumbline").failed
    assert "known fault: hooks/ours" in report(known, compiler="plumbline").summary()
    assert report(outcome("theirs", "live", True), compiler="plumbline").failed


def test_plain_data_has_everything():
    data = report(*MIXED).as_data()
    assert (data["recall"], data["complete"], len(data["cases"])) == (0.5, True, 6)
    cried = data["cases"][4]
    assert (cried["name"], cried["fault"], cried["status"], cried["expected"], cried["flagged"]) == (
        "cried",
        "modes",
        "control",
        False,
        True,
    )
    assert cried["sentence"] == "too loud"
