"""What the sweep goes through: operators and modules, dtypes, samples, contexts, fixed and dynamic sizes.

A task is what one child process is asked at once: one operator and dtype with fixed or dynamic sizes.  Its cases are
samples in contexts.  Everything is named by text, so that results can be stored, resumed and replayed.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from plumbline.compiler.base.errors import UserError

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool", "complex64")
"""The simplest first: a finding is reported with the first dtype that shows it."""


MODULE = "module:"
"""Starts the names of tasks that are modules."""


@dataclass(frozen=True, slots=True, order=True)
class SweepTask:
    """One operator (or module class) and dtype under one backend."""

    operator: str
    dtype: str
    dynamic: bool
    backend: str

    @property
    def is_module(self) -> bool:
        """Return whether the task is a class of `torch.nn`."""
        return self.operator.startswith(MODULE)

    @property
    def key(self) -> str:
        """Return the name of the task in the store of rows."""
        return f"{self.operator} {self.dtype} {'dynamic' if self.dynamic else 'static'} {self.backend}"


@dataclass(frozen=True, slots=True, order=True)
class SweepCase:
    """One call: a sample of the task's operator in a context; for modules the context is "train" or "eval"."""

    task: SweepTask
    sample: int
    context: str

    @property
    def key(self) -> str:
        """Return the name of the case, which a replay reads."""
        return f"{self.task.key} {self.context} {self.sample}"


def read_case(key: str) -> SweepCase:
    """Return the case of this name; raises UserError for any other text."""
    parts = key.split()
    if len(parts) != 6 or parts[2] not in ("static", "dynamic") or not parts[5].isdigit():
        hint = 'such as "add float32 static inductor alone 0"'
        raise UserError(f"{key!r} is not the name of a case", hint=hint)
    operator, dtype, sizes, backend, context, sample = parts
    return SweepCase(SweepTask(operator, dtype, sizes == "dynamic", backend), int(sample), context)


def dtype_of(name: str) -> torch.dtype:
    """Return the dtype of this name, such as "float32"."""
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def seed_of(*parts: object) -> int:
    """Return a seed that depends on the parts alone, the same in every process."""
    text = "|".join(map(str, parts))
    return int.from_bytes(hashlib.blake2s(text.encode(), digest_size=6).digest(), "big")


def shuffled_tasks(tasks: Sequence[SweepTask], seed: int) -> list[SweepTask]:
    """Return the tasks in rounds: each operator once, with a dtype drawn from the seed, before any a second time.

    What is done when time ends is then a fair sample of everything.  Within a round backends keep their order, and
    fixed sizes come before dynamic ones, which take five times as long.
    """
    backends = list(dict.fromkeys(task.backend for task in tasks))
    dtypes: dict[str, list[str]] = {}
    for task in tasks:
        dtypes.setdefault(task.operator, []).append(task.dtype)
    rounds = {
        (operator, dtype): number
        for operator, names in dtypes.items()
        for number, dtype in enumerate(sorted(set(names), key=lambda name: seed_of(seed, operator, name)))
    }

    def place(task: SweepTask) -> tuple[object, ...]:
        return (
            rounds[task.operator, task.dtype],
            task.dynamic,
            backends.index(task.backend),
            seed_of(seed, task.operator),
        )

    return sorted(tasks, key=place)
