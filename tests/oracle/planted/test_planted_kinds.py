"""Kinds of miscompile, each planted alone: the judge finds it, a user sees it, and the sound program is right."""

import pytest

from support.planted_kinds.planted_catalogue import all_kinds, known_misses
from support.planted_kinds.planted_scene import is_found, is_quiet, judge_kind, play

KINDS = all_kinds()
MISSES = known_misses()


@pytest.mark.parametrize("key", KINDS)
def test_it_is_found(key):
    verdicts, _ = judge_kind(KINDS[key], wrong=True)
    assert is_found(KINDS[key], verdicts) != (key in MISSES), [str(verdict) for verdict in verdicts]


@pytest.mark.parametrize("key", KINDS)
def test_the_sound_one_is_right(key):
    verdicts, seen = judge_kind(KINDS[key], wrong=False)
    if key not in MISSES:  # some of these are missed because the judge cannot judge their call
        assert is_quiet(verdicts), [(str(verdict), verdict.notes) for verdict in verdicts]
    assert not any(verdict.failed for verdict in verdicts), [str(verdict) for verdict in verdicts]
    if key not in MISSES:
        assert seen == play(KINDS[key], wrong=False), "the judge changed what the program does"


@pytest.mark.parametrize("key", KINDS)
def test_a_user_sees_it(key):
    right = play(KINDS[key], wrong=False)
    assert right == play(KINDS[key], wrong=False), "what a user sees of the sound program is not steady"
    assert right != play(KINDS[key], wrong=True)


def test_nearly_all_are_found():
    assert len(KINDS) >= 500
    assert len(MISSES) <= 0.03 * len(KINDS)


def test_every_miss_is_one_of_the_kinds():
    assert MISSES.keys() <= KINDS.keys()
    assert all(len(reason) > 20 for reason in MISSES.values())
