"""Kinds of miscompile, each planted alone: the judge finds it, a user sees it, and the sound program is right."""

import pytest

from support.planted_kinds.planted_catalogue import all_kinds, known_misses
from support.planted_kinds.planted_scene import is_found, is_quiet, judge_scene, play

KINDS = all_kinds()
MISSES = known_misses()


@pytest.mark.parametrize("key", KINDS)
def test_it_is_found(key):
    one = KINDS[key].make()
    verdicts, _ = judge_scene(one, one.plant)
    assert is_found(KINDS[key], verdicts) != (key in MISSES), [str(verdict) for verdict in verdicts]


@pytest.mark.parametrize("key", KINDS)
def test_the_sound_one_is_right(key):
    verdicts, seen = judge_scene(KINDS[key].make(), lambda program: program)
    assert is_quiet(verdicts), [(str(verdict), verdict.notes) for verdict in verdicts]
    unjudged = KINDS[key].make()
    assert seen == play(unjudged, unjudged.program), "the judge changed what the program does"


@pytest.mark.parametrize("key", KINDS)
def test_a_user_sees_it(key):
    sound, again, wrong = (KINDS[key].make() for _ in range(3))
    right = play(sound, sound.program)
    assert right == play(again, again.program), "what a user sees of the sound program is not steady"
    assert right != play(wrong, wrong.plant(wrong.program))


def test_nearly_all_are_found():
    assert len(KINDS) >= 120
    assert len(MISSES) <= 0.1 * len(KINDS)


def test_every_miss_is_one_of_the_kinds():
    assert MISSES.keys() <= KINDS.keys()
    assert all(len(reason) > 20 for reason in MISSES.values())
