"""What models write for torch.jit's compiler means nothing here: annotations give their value."""

import torch

from support.programs import Corpus, check

corpus = Corpus()


@corpus.program([torch.ones(2), torch.zeros(2)])
def annotated_list(tensors):
    found = torch.jit.annotate(list[torch.Tensor], [])
    for tensor in tensors:
        found.append(tensor + 1)
    return found


@corpus.parametrize()
def test_program(program):
    check(program)
