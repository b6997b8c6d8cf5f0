"""The text of the option `bisect`: what it switches, and what it cannot say."""

import re
from pathlib import Path

import pytest

from plumbline.compiler.base.bisecting.switches import KINDS, REQUIRED, read_switches
from plumbline.compiler.base.errors import UserError
from plumbline.compiler.base.options import Options, options_from_environment

KEY, OTHER = "0badc0de", "deadbeef"


@pytest.mark.parametrize(
    ("text", "off"),
    [
        ("", []),
        ("list", []),
        ("fusion:2", [2]),
        ("-fusion:2", [2]),
        ("fusion:1-2, fusion:4", [1, 2, 4]),
        ("fusion:3-", [3, 4]),
        ("fusion", [0, 1, 2, 3, 4]),
        ("all", [0, 1, 2, 3, 4]),
        ("+fusion:2", [0, 1, 3, 4]),
        ("-fusion,+fusion:2-3", [0, 1, 4]),
        ("+lowering:1", []),
        ("lowering", []),
        ("-all,+fusion", []),
        (f"fusion:#{KEY}", [0, 1, 2, 3, 4]),
        (f"fusion:#{OTHER}", []),
        ("fusion:@rule.one", [0, 1, 2, 3, 4]),
        ("fusion:@rule", []),
        ("lowering:@rule.one", []),
    ],
)
def test_what_is_off(text: str, off: list[int]) -> None:
    switches = read_switches(text)
    assert [number for number in range(5) if not switches.allows("fusion", number, KEY, "rule.one")] == off


@pytest.mark.parametrize("text", ["fusions", "fusion:x", "fusion:#12", "fusion:", "fusion 3", "+", "fusion:3-2x"])
def test_what_cannot_be_read_says_what_can(text: str) -> None:
    with pytest.raises(UserError, match=r"option bisect cannot be .* names no application") as error:
        Options().replace(bisect=text)
    assert all(kind in error.value.hint for kind in KINDS)


def test_the_environment_sets_it() -> None:
    assert options_from_environment({"PLUMBLINE_BISECT": "fusion:12"}).bisect == "fusion:12"


def test_the_page_has_every_kind_and_what_cannot_be_switched_off() -> None:
    page = (Path(__file__).resolve().parents[4] / "docs" / "bisecting.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \| (.+) \|$", page, re.MULTILINE)
    told = [row for row in rows if row[0] in KINDS]
    assert [row for row in told if row[1] == KINDS[row[0]].one] == [(k.name, k.one, k.instead) for k in KINDS.values()]
    assert all(f"| {what} | {why.replace('`', '')} |" in page.replace("`", "") for what, why in REQUIRED.items())


def test_the_file_of_every_kind_exists() -> None:
    compiler = Path(__file__).resolve().parents[4] / "compiler"
    assert [kind.file for kind in KINDS.values() if not (compiler / kind.file).is_file()] == []
