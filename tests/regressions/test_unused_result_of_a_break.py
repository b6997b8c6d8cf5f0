"""The result of a break that the program only stores is not guarded: a new random number needs no recompilation."""

import random

import torch

from support.programs import Corpus, check

corpus = Corpus()


@corpus.program(torch.ones(3), graphs=2, breaks=1)
def stored_and_not_used(x):
    x = x + 1
    probability = random.uniform(0, 1)
    if x.shape[0] > 5 and probability < 0.5:
        return x
    return x * 2


@corpus.program(torch.ones(3), graphs=2, breaks=1)
def dropped(x):
    x = x + 1
    random.uniform(0, 1)
    return x * 2


@corpus.parametrize()
def test_program(program):
    check(program)
