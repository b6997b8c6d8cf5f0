"""Node ids with and without a variant: `test_gate[0.1]` names all of `test_gate[0.1-plumbline:eager]`, ...

Light: loaded in a session with the plugin off as well, where `--lf` meets the ids of a judged run.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

_LABEL = re.compile(r"(?P<before>[-\[])(?P<label>(?:plumbline|torch):(?:eager|aot_eager|inductor))\]$")


def split_id(node_id: str) -> tuple[str, str]:
    """Return the id of a test and the label of the variant, "" where the id names none.

    >>> split_id("test_gate[0.1-plumbline:eager]")
    ('test_gate[0.1]', 'plumbline:eager')
    >>> split_id("test_gate")
    ('test_gate', '')
    """
    found = _LABEL.search(node_id)
    if found is None:
        return node_id, ""
    plain = node_id[: found.start()]
    return plain + ("]" if found["before"] == "-" else ""), found["label"]


def last_failed(config: pytest.Config) -> dict[Any, bool] | None:
    """Return pytest's own dict of the tests that failed last; None where no option asks for it."""
    asked = config.getoption("lf", False) or config.getoption("failedfirst", False)
    plugin = config.pluginmanager.get_plugin("lfplugin") if asked else None
    failed: dict[Any, bool] | None = getattr(plugin, "lastfailed", None)
    return failed


def name_tests_alone(failed: dict[Any, bool]) -> dict[str, set[str]]:
    """Replace ids of variants by those of their tests, in place; return the labels each had."""
    labels: dict[str, set[str]] = {}
    for key in list(failed):
        test, label = split_id(str(key))
        if label:
            labels.setdefault(test, set()).add(label)
            del failed[key]
            failed[_like(key, test)] = True
    return labels


def name_variants_again(failed: dict[Any, bool], labels: Mapping[str, set[str]], items: Iterable[Any]) -> None:
    """Replace ids of tests by those of their variants among the items, in place.

    labels: those that had failed, all of a test where it has none; what is not among the items gets its ids back.
    """
    by_test: dict[str, list[Any]] = {}
    for item in items:
        by_test.setdefault(item.test_id, []).append(item)
    for key in list(failed):
        test = str(key)
        known = labels.get(test, set())
        variants = by_test.get(test, [])
        chosen = [item for item in variants if item.variant.label in known] or variants
        names = [item.nodeid for item in chosen] or [variant_id(test, label) for label in known]
        if names:
            del failed[key]
            failed.update({_like(key, name): True for name in names})


def _like(key: Any, node_id: str) -> Any:
    """Return an id as pytest has it: text, and since 9.2 an object made from it."""
    return node_id if isinstance(key, str) else type(key).parse(node_id)


def variant_id(test: str, label: str) -> str:
    """Return the node id of a test under a variant."""
    return f"{test[:-1]}-{label}]" if test.endswith("]") and "[" in test.rpartition("::")[2] else f"{test}[{label}]"
