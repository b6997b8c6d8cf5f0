"""`dtype=int` and its like reach graphs as torch's own dtypes: a graph's text cannot name the Python type."""

import torch

from support.programs import Corpus, check

corpus = Corpus()


@corpus.program(torch.ones(3))
def python_types_as_dtypes(x):
    numbers = torch.zeros(3, dtype=int), torch.ones(3, dtype=float), torch.zeros(3, dtype=complex)
    return [number + x for number in numbers], torch.tensor([0], dtype=bool), x.to(dtype=float)


@corpus.parametrize()
def test_program(program):
    check(program)
