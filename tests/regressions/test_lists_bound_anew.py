"""The judge set back the list that `sys.path` was when it was imported, and not the one that a program bound since."""

import logging
import sys

import pytest

from support.planted_kinds.planted_catalogue import all_kinds
from support.planted_kinds.planted_scene import is_found, judge_kind

KINDS = all_kinds()


@pytest.mark.parametrize(
    ("holder", "name", "key"),
    [
        (sys, "path", "process: the search path is longer"),
        (sys, "meta_path", "process: a finder of modules is left"),
        (logging.root, "handlers", "process: a handler of logging is left"),
    ],
)
def test_the_list_of_now_is_set_back(holder, name, key, monkeypatch):
    monkeypatch.setattr(holder, name, list(getattr(holder, name)))
    verdicts, _ = judge_kind(KINDS[key], wrong=True)
    assert is_found(KINDS[key], verdicts), [str(verdict) for verdict in verdicts]
