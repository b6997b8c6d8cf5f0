"""Generated programs run, differ, repeat by seed, and cover what they are made for."""

import random
import warnings
from collections import Counter

import pytest

from plumbline.fuzz.generated_source import functions_of
from plumbline.fuzz.transform_programs.generation import programs
from plumbline.fuzz.transform_programs.programs import TransformProgram
from plumbline.fuzz.transform_programs.simplification import simpler_programs
from plumbline.fuzz.transform_programs.vocabulary import VOCABULARY


def drawn(count: int, seed: int) -> list[TransformProgram]:
    draw = random.Random(seed)
    return [programs(draw) for _ in range(count)]


@pytest.fixture(scope="module")
def many() -> list[TransformProgram]:
    return drawn(300, 5)


def test_a_seed_repeats(many):
    assert drawn(30, 5) == many[:30]
    assert drawn(30, 6) != many[:30]


def test_programs_differ_and_cover_the_vocabulary(many):
    assert len(set(many)) > 290
    seen = Counter(name for program in many for name in program.names)
    assert len(VOCABULARY.keys() & seen.keys()) >= 0.9 * len(VOCABULARY)
    assert {"grad", "vjp", "jvp", "vmap", "jacrev", "jacfwd", "hessian"} <= seen.keys()
    assert {len(program.nest) for program in many} == {0, 1, 2, 3}
    assert any(program.compiled < len(program.nest) for program in many)


def test_most_programs_run(many):
    failures = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for program in many:
            try:
                functions_of(program.source())[program.entry](*program.arguments())
            except (RuntimeError, ValueError, TypeError, IndexError) as error:
                failures[str(error)[:80]] += 1
    assert failures.total() <= 0.05 * len(many), failures.most_common(3)


def test_simpler_programs_are_smaller_and_still_text(many):
    for program in many[:60]:
        for smaller in simpler_programs(program):
            assert len(smaller.source()) <= len(program.source()) + 2 * len(program.steps) + 20
            compile(smaller.source(), "smaller", "exec")
