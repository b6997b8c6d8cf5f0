"""How many planted kinds the judge finds, by class of effect: `python tests/support/planted_table.py`."""

import argparse
import collections
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.planted_kinds.planted_catalogue import all_kinds
from support.planted_kinds.planted_scene import PlantedKind, is_found, is_quiet, judge_kind, play

MARKS = {
    "missed": "the judge does not find it",
    "alarm": "it says something against the sound program",
    "harm": "it changes what the sound program does",
    "unsteady": "what a user sees of the sound program is not steady",
    "broken": "its scene cannot be played",
    "unseen": "no user sees it",
}


def answers_of(kind: PlantedKind) -> set[str]:
    """Return the marks of one kind; none is how it should be."""
    marks = set()
    verdicts, _ = judge_kind(kind, wrong=True)
    if not is_found(kind, verdicts):
        marks.add("missed")
    verdicts, seen = judge_kind(kind, wrong=False)
    if not is_quiet(verdicts):
        marks.add("alarm")
    right = play(kind, wrong=False)
    if right != play(kind, wrong=False):
        marks.add("unsteady")
    elif seen != right:
        marks.add("harm")
    if right == play(kind, wrong=True):
        marks.add("unseen")
    return marks


def _answers_or_error(kind: PlantedKind) -> set[str]:
    try:
        return answers_of(kind)
    except Exception as error:
        print(f"{kind.key}: {type(error).__name__}: {error}"[:300])
        return {"broken"}


def main() -> int:
    """Print the table, then the kinds that have a mark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="kinds whose key has this text")
    wanted = [kind for key, kind in all_kinds().items() if parser.parse_args().only in key]
    answers = {kind.key: _answers_or_error(kind) for kind in wanted}
    count = collections.Counter(kind.effect for kind in wanted)
    missed = collections.Counter(kind.effect for kind in wanted if "missed" in answers[kind.key])
    print("| class of effect | kinds | found |\n|---|---:|---:|")
    for effect in sorted(count):
        print(f"| {effect} | {count[effect]} | {count[effect] - missed[effect]} |")
    total, found = len(wanted), len(wanted) - sum(missed.values())
    print(f"| all | {total} | {found} ({found / max(1, total):.1%}) |\n")
    for key, marks in answers.items():
        if marks:
            print(f"{key}: {', '.join(MARKS[mark] for mark in sorted(marks))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
