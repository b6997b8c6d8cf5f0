"""Slots stand for places of their own: a state is recognised by the values of the slots, so none may undo another's."""

import ast

from plumbline.fuzz.guard_scenarios.guard_slots import SLOTS
from plumbline.fuzz.guard_scenarios.scenarios import SLOTS as FILLED


def written_places(text: str) -> set[str]:
    """Return the names, attributes and items that the text assigns or deletes, and the switches of torch it sets."""
    places = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign):
            targets = [item for target in node.targets for item in getattr(target, "elts", [target])]
            places |= {ast.unparse(target) for target in targets}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "del_member":
            owner, name = node.args
            places.add(f"{ast.unparse(owner)}.{ast.literal_eval(name)}")
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("torch.set_"):
            device = [ast.unparse(argument) for argument in node.args[:-1]]
            places.add(" ".join([ast.unparse(node.func), *device]))
    return places


def test_places_are_read_from_the_text():
    assert written_places("A.b = 1; c, d['e'] = 1, 2") == {"A.b", "c", "d['e']"}
    assert written_places("del_member(A, 'b')") == {"A.b"}
    assert written_places("torch.set_num_threads(1)") == {"torch.set_num_threads"}


def test_no_two_slots_write_one_place():
    assert SLOTS is FILLED
    writers: dict[str, set[str]] = {}
    for name, slot in SLOTS.items():
        for text in slot.values:
            for place in written_places(text):
                writers.setdefault(place, set()).add(name)
    assert {place: names for place, names in writers.items() if len(names) > 1} == {}
