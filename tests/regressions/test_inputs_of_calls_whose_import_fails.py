"""An import of a name that a loaded module lacks: the error keeps none of the call's inputs alive."""

import sys
import types
import weakref

import pytest
import torch

import plumbline


def handled(x):
    try:
        from part_without_it import missing
    except ImportError:
        return x + 1
    return missing


def raised(x):
    from part_without_it import missing

    return missing


@pytest.mark.parametrize("program", [handled, raised])
def test_they_end(program, monkeypatch):
    monkeypatch.setitem(sys.modules, "part_without_it", types.ModuleType("part_without_it"))
    compiled = plumbline.compile(program, backend="eager")
    for _ in range(2):
        given = torch.ones(2) + 1
        seen = weakref.ref(given)
        try:
            compiled(given)
        except ImportError:
            assert program is raised
        del given
        assert seen() is None
