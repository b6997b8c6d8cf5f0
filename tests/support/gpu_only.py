"""Tests of documents that only a GPU can run: the one reason for a skip in `tests/faq/`, from a list that shrinks."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

LIST = Path(__file__).resolve().parents[1] / "faq" / "gpu_only.toml"
MOST = 4
"""How many entries the list may have: this number goes down with it, never up."""


def reasons() -> dict[str, str]:
    """Return the listed tests, each with the reason."""
    return dict(tomllib.loads(LIST.read_text(encoding="utf-8")))


def needs_gpu(test: Callable[..., Any]) -> Any:
    """Skip a listed test where there is no GPU; raises KeyError for one that is not listed."""
    reason = reasons()[test.__name__]
    marked = pytest.mark.gpu(pytest.mark.skipif(not torch.cuda.is_available(), reason=reason)(test))
    marked.needs_gpu = True
    return marked
