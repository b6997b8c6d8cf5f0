import itertools

from plumbline.minifier.failure_signature import FailureSignature
from plumbline.minifier.source.failure_conditions import find_conditions
from plumbline.minifier.source.source_run import RunReport, SourceSettings

WRONG = FailureSignature("WRONG", "values", band="gross")
BAD, GOOD = RunReport(WRONG, "wrong"), RunReport(None, "fine")
SETTINGS = SourceSettings(compiler="plumbline", backend="inductor")


def test_a_failure_at_every_run_is_judged_on_one_thread_without_conditions():
    found = find_conditions(lambda settings: BAD, SETTINGS)
    assert (found.sentence, found.settings.threads, found.settings.repeat) == ("", 1, 1)


def test_gradients_are_judged_only_where_all_else_is_right():
    asked = []

    def ask(settings, needed):
        asked.append(settings.gradients)
        return BAD if settings.gradients or not needed else GOOD

    assert find_conditions(lambda settings: ask(settings, needed=True), SETTINGS).sentence == ""
    assert asked[:2] == [False, True]
    asked.clear()
    assert find_conditions(lambda settings: ask(settings, needed=False), SETTINGS).sentence == ""
    assert asked[0] is False


def test_a_failure_of_several_threads_keeps_them():
    found = find_conditions(lambda settings: GOOD if settings.threads == 1 else BAD, SETTINGS)
    assert found.settings.threads is None
    assert "one thread" in found.sentence


def test_a_failure_of_warm_caches():
    found = find_conditions(lambda settings: BAD if settings.warm else GOOD, SETTINGS)
    assert found.settings.warm
    assert "caches" in found.sentence


def test_a_failure_now_and_then_gets_its_rate_and_enough_runs():
    runs = itertools.count()

    def ask(settings):
        return BAD if any(next(runs) % 4 == 0 for _ in range(settings.repeat)) else GOOD

    found = find_conditions(ask, SETTINGS)
    assert 0.15 < found.rate < 0.4
    assert (1 - found.rate / 2) ** found.settings.repeat <= 1e-3
    assert "runs" in found.sentence


def test_what_never_fails_or_fails_by_itself_has_no_conditions():
    assert find_conditions(lambda settings: GOOD, SETTINGS) is None
    assert find_conditions(lambda settings: RunReport(None, "", own_error="NameError"), SETTINGS) is None
