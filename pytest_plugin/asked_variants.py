"""Which variants of which tests the command line asks for: its ids may name one, and pytest knows tests alone."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from plumbline.compiler.base.errors import UserError

from .variant_ids import last_failed, name_tests_alone, name_variants_again, split_id
from .variants import Variant


class AskedVariants:
    """The ids of one command line, without variants for pytest, and the variants for us.

    Raises UserError for an id under a variant that is not run.
    """

    def __init__(self, config: pytest.Config, variants: Sequence[Variant]) -> None:
        self._config = config
        self._asked: list[tuple[Path, tuple[str, ...], frozenset[str]]] = []
        known = frozenset(variant.label for variant in variants)
        arguments: dict[str, set[str]] = {}
        for argument in config.args:
            test, label = split_id(argument)
            if label and label not in known:
                hint = f"add --compile-backends={label}, or name the test alone: {test}"
                raise UserError(f"{label} is not among the variants that run", where=argument, hint=hint)
            arguments.setdefault(test, set()).update({label} if label else known)
        if any(chosen != known for chosen in arguments.values()):
            self._asked = [(*self._place(test), frozenset(chosen)) for test, chosen in arguments.items()]
        config.args[:] = list(arguments)
        self._failed = last_failed(config)
        self._failed_labels = name_tests_alone(self._failed) if self._failed is not None else {}

    def of(self, item: pytest.Item, variants: Sequence[Variant]) -> list[Variant]:
        """Return the variants under which a test is to run, in order."""
        if not self._asked:
            return list(variants)
        names = tuple(_parts(item.nodeid)[1:])
        labels = frozenset[str]().union(
            *(labels for path, asked, labels in self._asked if _contains(path, asked, item.path, names))
        )
        return [variant for variant in variants if variant.label in labels]

    def note(self, items: Sequence[Any]) -> None:
        """Tell pytest's `--lf` and `--ff` which variants had failed, now that there are some."""
        if self._failed is not None:
            name_variants_again(self._failed, self._failed_labels, items)

    def _place(self, argument: str) -> tuple[Path, tuple[str, ...]]:
        path, *names = _parts(argument)
        return Path(os.path.normpath(self._config.invocation_params.dir / path)), tuple(names)


def _parts(argument: str) -> list[str]:
    """Split an id whose parameters may contain two colons."""
    plain, bracket, parameters = argument.partition("[")
    parts = plain.split("::")
    return [*parts[:-1], parts[-1] + bracket + parameters]


def _contains(path: Path, asked: tuple[str, ...], item_path: Path, names: tuple[str, ...]) -> bool:
    """Return whether an argument means a test: its folder, file, class, function or the test itself."""
    if not asked:
        return path == item_path or path in item_path.parents
    if path != item_path or len(asked) > len(names):
        return False
    *before, last = names[: len(asked)]
    return before == list(asked[:-1]) and asked[-1] in (last, last.partition("[")[0])
