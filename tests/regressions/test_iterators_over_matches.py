"""The iterator that `finditer` gave while capturing went into the specialisation: the next call found it used up."""

import re

import torch

import plumbline

PATTERN = re.compile(r"(\w)=(\d+)")


def test_every_call_iterates_anew():
    def function(x, text):
        found = {match[1]: int(match[2]) for match in PATTERN.finditer(text)}
        return x * sum(found.values()), [match.start() for match in re.finditer("=", text)]

    compiled = plumbline.compile(function, backend="eager")
    for text in ("a=1, b=22", "none", "a=1, b=22", "a=1, b=22"):
        assert compiled(torch.ones(1), text) == function(torch.ones(1), text)
