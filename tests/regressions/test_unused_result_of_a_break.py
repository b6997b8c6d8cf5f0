"""The result of a break that the program only stores is not guarded: a new random number needs no recompilation."""

import secrets

import torch

from support.programs import Corpus, check

corpus = Corpus()


@corpus.program(torch.ones(3), graphs=2, breaks=1)
def stored_and_not_used(x):
    x = x + 1
    number = secrets.randbelow(10)
    if x.shape[0] > 5 and number < 5:
        return x
    return x * 2


@corpus.program(torch.ones(3), graphs=2, breaks=1)
def dropped(x):
    x = x + 1
    secrets.randbelow(10)
    return x * 2


@corpus.parametrize()
def test_program(program):
    check(program)
